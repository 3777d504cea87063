// Frames on their way to the client of a completions socket. Generations pause while too many wait.
import { Array as Arr, Effect, Latch } from "effect"
import type { CloseEvent, SocketError, Writer } from "effect/socket/Socket"
import type { Generation } from "#services/Generation.ts"

/** Characters waiting for the socket beyond which its generations pause: a quarter of the transport's limit for a reader. */
const pauseAboveChars = 64 * 1024
/** Characters waiting beyond which the socket is closed: pausing did not help. The transport's limit for any reader. */
const cutAboveChars = 256 * 1024

/** Queue of frames for one client: callbacks add them, one fiber writes them. */
export class Outbox {
  #frames: Array<string> = []
  #last: CloseEvent | undefined
  #chars = 0
  readonly #filled = Latch.makeUnsafe(false)
  readonly #running = new Set<Generation>()
  /** Opens when frames arrive although generations are paused and the limit is exceeded; later frames are dropped. */
  readonly overflow = Latch.makeUnsafe(false)

  add(generation: Generation): () => void {
    this.#running.add(generation)
    return () => this.#running.delete(generation)
  }

  push(frame: object): void {
    const text = JSON.stringify(frame)
    const before = this.#chars
    if (before + text.length > cutAboveChars && before > 0) return void this.overflow.openUnsafe()
    this.#frames.push(text)
    this.#chars += text.length
    this.#filled.openUnsafe()
    if (before <= pauseAboveChars && this.#chars > pauseAboveChars) {
      for (const { flow } of this.#running) flow.pause()
    }
  }

  /** Closes the socket after all frames that were added before. */
  close(event: CloseEvent): void {
    this.#last = event
    this.#filled.openUnsafe()
  }

  /** Waits for queued frames and writes all of them. Taking them frees capacity, so it resumes paused generations. */
  writeTo(writer: Writer): Effect.Effect<void, SocketError> {
    return Effect.flatMap(this.#filled.await, () => {
      const frames = this.#frames
      const last = this.#last
      this.#frames = []
      this.#filled.closeUnsafe()
      if (this.#chars > pauseAboveChars) for (const { flow } of this.#running) flow.resume()
      this.#chars = 0
      const written = Arr.isReadonlyArrayNonEmpty(frames) ? writer.writeAll(frames) : Effect.void
      return last === undefined ? written : Effect.andThen(written, writer.write(last))
    })
  }
}
