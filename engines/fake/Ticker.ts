// One clock for all streams of a fake engine, because continuous batching has one decode step for all sequences:
// streams with the same step time advance in the same tick of the event loop, in the order in which they joined.
interface Member {
  readonly step: () => boolean
}

class Wheel {
  readonly #members = new Set<Member>()
  #running = false
  readonly #stepMs: number

  constructor(stepMs: number) {
    this.#stepMs = stepMs
  }

  add(member: Member): () => void {
    this.#members.add(member)
    if (!this.#running) {
      this.#running = true
      this.#schedule()
    }
    return () => this.#members.delete(member)
  }

  #schedule(): void {
    if (this.#stepMs === 0) setImmediate(() => this.#turn())
    else setTimeout(() => this.#turn(), this.#stepMs)
  }

  #turn(): void {
    for (const member of this.#members) if (!member.step()) this.#members.delete(member)
    if (this.#members.size === 0) this.#running = false
    else this.#schedule()
  }
}

export class Ticker {
  readonly #wheels = new Map<number, Wheel>()

  /** Calls `step` once a tick until it returns false or the returned function is called. */
  join(stepMs: number, step: () => boolean): () => void {
    let wheel = this.#wheels.get(stepMs)
    if (wheel === undefined) {
      // Scripts choose the step time. No test has 64 different ones, but the map needs a bound.
      if (this.#wheels.size >= 64) this.#wheels.clear()
      wheel = new Wheel(stepMs)
      this.#wheels.set(stepMs, wheel)
    }
    return wheel.add({ step })
  }
}
