// What a conversation's loudspeaker plays, in real time: the answers as they arrive, silence between them, and nothing more of an
// answer that was interrupted.
import { SampleQueue } from "#domain/audio/SampleQueue.ts"

const rateHz = 24_000
const pieceSamples = rateHz / 50

export class Loudspeaker {
  readonly #write: (samples: Int16Array) => void
  readonly #waiting = new SampleQueue()
  #startedMs = 0
  #played = 0
  #timer: NodeJS.Timeout | undefined

  /** @param write takes 20 ms at a time: s16, 24 kHz */
  constructor(write: (samples: Int16Array) => void) {
    this.#write = write
  }

  start(): void {
    this.#startedMs = performance.now()
    this.#timer = setInterval(() => this.playDue(), 20)
  }

  play(samples: Int16Array): void {
    this.#waiting.push(samples)
  }

  /** Throws away what was not played. */
  silence(): void {
    this.#waiting.clear()
  }

  /** Writes the rest of what it was given. */
  stop(): void {
    clearInterval(this.#timer)
    while (this.#waiting.length > 0) this.#write(this.#waiting.take(pieceSamples))
  }

  /** Writes all that should have been played by now; a late process loses nothing. */
  playDue(): void {
    const due = Math.floor(((performance.now() - this.#startedMs) * rateHz) / 1000)
    while (this.#played + pieceSamples <= due) {
      this.#write(this.#waiting.take(pieceSamples))
      this.#played += pieceSamples
    }
  }
}
