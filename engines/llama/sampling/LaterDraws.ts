// Draws that need a mask which takes long to find. They are advanced by one slice in each tick of the event loop, in turn, so that the
// steps of other replies and the engine's messages wait for one slice at most.

/** A draw that is not done yet. */
export interface LaterDraw {
  /** Works for a slice; true once the draw is done. */
  readonly advance: () => boolean
  /** The token, once it is done; -1 if there is none. */
  readonly token: () => number
  /** The row of logits, which stays as it is. */
  readonly row: Float32Array
}

interface Entry {
  readonly draw: LaterDraw
  readonly wanted: () => boolean
  readonly done: (token: number) => void
  readonly failed: (cause: unknown) => void
}

export class LaterDraws {
  readonly #waiting: Array<Entry> = []

  /** Calls `done` or `failed` once, unless the draw is no longer `wanted` before. */
  add(entry: Entry): void {
    if (this.#waiting.push(entry) === 1) setImmediate(this.#tick)
  }

  readonly #tick = (): void => {
    const entry = this.#waiting.shift()
    if (entry?.wanted() === true) this.#advance(entry)
    if (this.#waiting.length > 0) setImmediate(this.#tick)
  }

  #advance(entry: Entry): void {
    try {
      if (entry.draw.advance()) entry.done(entry.draw.token())
      else this.#waiting.push(entry)
    } catch (cause) {
      entry.failed(cause)
    }
  }
}
