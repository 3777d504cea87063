// Finds the gaps that a client hears when it plays a stream as it arrives: audio that arrives after the end of the
// audio before it leaves a silence. Pure; the caller passes the time. One for each stream.
import { samplesToMs } from "./Audio.ts"

export class PlaybackClock {
  readonly #rateHz: number
  /** The time at which the audio delivered so far will have been played. */
  #endMs: number | undefined

  constructor(rateHz: number) {
    this.#rateHz = rateHz
  }

  get begun(): boolean {
    return this.#endMs !== undefined
  }

  /**
   * Records the arrival of audio. Returns the silence before it in milliseconds, 0 for none. Playback begins with the
   * first.
   */
  delivered(samples: number, nowMs: number): number {
    const endMs = this.#endMs ?? nowMs
    const silentMs = Math.max(0, nowMs - endMs)
    this.#endMs = endMs + silentMs + samplesToMs(samples, this.#rateHz)
    return silentMs
  }
}
