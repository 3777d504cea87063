// Probabilities that a detection model gives for steps of audio, as the detector reads them: hop by hop, and which hops are still waited for.
// Pure; one value for each stream of audio, which begins with the stream.
import { hopSamples } from "../activity/BandEnergies.ts"
import type { SpeechScores } from "./VoiceActivityDetector.ts"

export class StepScores implements SpeechScores {
  readonly #stepSamples: number
  /** Of the steps from `#first` on. */
  readonly #scores: Array<number> = []
  #first = 0
  #hasEnded = false

  constructor(stepSamples: number) {
    this.#stepSamples = stepSamples
  }

  /** Whether the model gives no more. */
  get hasEnded(): boolean {
    return this.#hasEnded
  }

  /** The model's probabilities of the next steps. */
  push(scores: ArrayLike<number>): void {
    this.#scores.push(...Array.from(scores))
  }

  /** The model gives no more: hops without a probability are judged by the detector's own network. */
  end(): void {
    this.#hasEnded = true
  }

  /** Whether the hop can be judged: its probability is known, or none will be. */
  knows(hop: number): boolean {
    return this.#hasEnded || hop < 0 || this.#stepOf(hop) < this.#first + this.#scores.length
  }

  at(hop: number): number | undefined {
    if (hop < 0) return this.#hasEnded ? undefined : 0
    const step = this.#stepOf(hop)
    // Hops are asked about in their order.
    while (this.#first < step && this.#scores.length > 0) {
      this.#scores.shift()
      this.#first++
    }
    return this.#first === step ? this.#scores[0] : undefined
  }

  /** The step in which the middle of the hop lies. */
  #stepOf(hop: number): number {
    return Math.floor(((hop + 0.5) * hopSamples) / this.#stepSamples)
  }
}
