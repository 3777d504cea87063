// Places the audio that comes in on the clock of what is played, for the comparison of the two. A client that sends in real time
// sends each sample a constant time after it was recorded, plus what the network adds now and then.
import { hopMs } from "#domain/activity/BandEnergies.ts"
import { EchoDetector } from "#domain/activity/EchoDetector.ts"
import type { PlayedAudio } from "#domain/activity/PlayedAudio.ts"
import type { SpeechDoubt } from "#domain/audio/VoiceActivityDetector.ts"

/** A client that is so late has paused: its audio has a new place. A guess. */
const pausedMs = 300
/** How fast a delay that has grown is followed: a client's clock may be slower than ours. A guess. */
const following = 0.01

export class EchoDoubt implements SpeechDoubt {
  readonly #detector: EchoDetector
  /** The time at which a sample arrives without delay is its position in the audio and this, milliseconds. */
  #offsetMs: number | undefined
  /** Position of the next hop in the audio. */
  #atMs = 0

  constructor(played: PlayedAudio) {
    this.#detector = new EchoDetector(played)
  }

  /** The hops to come begin at this position of the audio. */
  begins(heardMs: number): void {
    this.#atMs = heardMs
  }

  /** Audio up to this position has come. */
  arrived(heardMs: number, nowMs: number): void {
    const found = nowMs - heardMs
    const offsetMs = this.#offsetMs ?? found
    const late = found - offsetMs
    this.#offsetMs = late < 0 || late > pausedMs ? found : offsetMs + late * following
  }

  hear(energies: Float32Array): void {
    this.#atMs += hopMs
    this.#detector.hear(energies, this.#atMs + (this.#offsetMs ?? 0))
  }

  get isEcho(): boolean {
    return this.#detector.isEcho
  }
}
