// Frames on their way to the client of a completions socket. Generations pause while too many wait.
import { Array as Arr, Effect, Latch } from "effect"
import type { CloseEvent, SocketError, Writer } from "effect/socket/Socket"
import type { Generation } from "#services/Generation.ts"

/** Characters waiting for the socket beyond which its generations pause: a quarter of the transport's limit for a reader. */
const pauseAboveChars = 64 * 1024
/** Characters written at once: well below the bytes of which the transport drops a part. */
const charsAtOnce = 64 * 1024
/**
 * Characters waiting beyond which the socket is closed: pausing did not help. What engines have sent before they read of
 * the pause arrives all the same, and all of it at once where the gateway was held up. That is 64 KiB, some 300 tokens,
 * for each of the 16 generations that a socket may run.
 */
const cutAboveChars = 1024 * 1024

/** Queue of frames for one client: callbacks add them, one fiber writes them. */
export class Outbox {
  #frames: Array<string> = []
  #last: CloseEvent | undefined
  #chars = 0
  #paused = false
  readonly #filled = Latch.makeUnsafe(false)
  readonly #running = new Set<Generation>()
  /** Opens when frames arrive although generations are paused and the limit is exceeded; later frames are dropped. */
  readonly overflow = Latch.makeUnsafe(false)

  add(generation: Generation): () => void {
    this.#running.add(generation)
    if (this.#paused) generation.flow.pause()
    return () => this.#running.delete(generation)
  }

  push(frame: object): void {
    const text = JSON.stringify(frame)
    const before = this.#chars
    if (before + text.length > cutAboveChars && before > 0) return void this.overflow.openUnsafe()
    this.#frames.push(text)
    this.#chars += text.length
    this.#filled.openUnsafe()
    if (this.#paused || this.#chars <= pauseAboveChars) return
    this.#paused = true
    for (const { flow } of this.#running) flow.pause()
  }

  /** Closes the socket after all frames that were added before. */
  close(event: CloseEvent): void {
    this.#last = event
    this.#filled.openUnsafe()
  }

  /** Waits for queued frames and writes some of them. When few are left, it resumes paused generations. */
  writeTo(writer: Writer): Effect.Effect<void, SocketError> {
    return Effect.flatMap(this.#filled.await, () => {
      const frames = this.#take()
      const last = this.#last
      const written = Arr.isReadonlyArrayNonEmpty(frames) ? writer.writeAll(frames) : Effect.void
      if (this.#frames.length > 0) return written
      this.#filled.closeUnsafe()
      return last === undefined ? written : Effect.andThen(written, writer.write(last))
    })
  }

  /** Takes the oldest frames, as many as are written at once; a longer one alone. */
  #take(): ReadonlyArray<string> {
    let count = 0
    let chars = 0
    for (const { length } of this.#frames) {
      if (count > 0 && chars + length > charsAtOnce) break
      count++
      chars += length
    }
    this.#chars -= chars
    if (this.#paused && this.#chars <= pauseAboveChars) {
      this.#paused = false
      for (const { flow } of this.#running) flow.resume()
    }
    return this.#frames.splice(0, count)
  }
}
