// Whether somebody who plays a stream as it comes would have run dry: audio that is delivered later than the end of the
// audio before it leaves a silence. Pure; time comes in as numbers. One a speech stream.
import { samplesToMs } from "./Audio.ts"

export class PlaybackClock {
  private readonly rateHz: number
  /** When the audio delivered so far will have been played. */
  private endMs: number | undefined

  constructor(rateHz: number) {
    this.rateHz = rateHz
  }

  get begun(): boolean {
    return this.endMs !== undefined
  }

  /** Audio arrives; the silence before it, milliseconds, 0 for none. Playing begins with the first. */
  delivered(samples: number, nowMs: number): number {
    const endMs = this.endMs ?? nowMs
    const silentMs = Math.max(0, nowMs - endMs)
    this.endMs = endMs + silentMs + samplesToMs(samples, this.rateHz)
    return silentMs
  }
}
