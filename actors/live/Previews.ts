// What a live session expects its final result to be, while a silence lasts that may end its audio: which silence is being
// transcribed ahead, the newest result, and how much of the audio that result covers. Makes no calls of an engine.
import { Effect } from "effect"
import { LISTEN_RATE_HZ, msToSamples } from "#domain/audio/Audio.ts"
import type { LiveHypothesis } from "#domain/audio/LiveTranscript.ts"
import type { Pause } from "#domain/audio/TurnDetector.ts"
import { Signal } from "#domain/queues/Signal.ts"
import { PreviewPlan, type PreviewTimes, unheardMs } from "./PreviewPlan.ts"

export class Previews {
  private readonly plan = new PreviewPlan()
  private readonly news = new Signal()
  /** The newest result, and the number of samples that it covers. */
  private newest: { readonly hypothesis: LiveHypothesis; readonly until: number } | undefined
  /** The length with which the present silence ends the turn, as it was told last. */
  private endsAtMs = 0
  /** The silence of which a preview is due or being made. */
  private silence: Pause | undefined
  /** What the newest preview took, milliseconds. */
  tookMs: number | undefined
  /** Samples that the preview in the making covers. */
  private coming: number | undefined

  /** The audio so far ends with this silence. True where a preview should begin, which is then due. */
  paused(pause: Pause, lately?: PreviewTimes): boolean {
    this.endsAtMs = pause.endsAtMs
    if (this.silence !== undefined || !this.plan.isDue(pause, lately)) return false
    this.silence = pause
    return true
  }

  /** Speech goes on: what was expected is not so. True where a preview was due or being made. */
  resumed(): boolean {
    this.plan.forget()
    this.newest = undefined
    this.coming = undefined
    const wasDue = this.silence !== undefined
    this.silence = undefined
    return wasDue
  }

  get isDue(): boolean {
    return this.silence !== undefined
  }

  /** The due preview begins, of the first `until` samples; gives its silence, or undefined where speech went on before. */
  begin(until: number): Pause | undefined {
    if (this.silence !== undefined) this.coming = until
    return this.silence
  }

  /** Whether the preview of this silence is still wanted. */
  isWanted(pause: Pause): boolean {
    return this.silence === pause
  }

  /** The preview of the silence is over; without a result where the engine was busy. */
  made(pause: Pause, until: number, tookMs: number, hypothesis: LiveHypothesis | undefined): void {
    this.silence = undefined
    this.coming = undefined
    this.tookMs = tookMs
    this.plan.made({ quietMs: pause.quietMs, tookMs })
    if (hypothesis !== undefined) this.newest = { hypothesis, until }
  }

  /** There is a newer result, and it has been reported. */
  announce(): void {
    this.news.set()
  }

  /** Completes when there is a newer result than when it completed last; undefined if speech went on since. */
  get next(): Effect.Effect<LiveHypothesis | undefined> {
    return Effect.map(this.news.wait, () => {
      this.news.clear()
      return this.newest?.hypothesis
    })
  }

  /** The result for exactly so many samples. */
  of(samples: number): LiveHypothesis | undefined {
    return this.newest?.until === samples ? this.newest.hypothesis : undefined
  }

  /**
   * Where audio of `total` samples may end, if its last silence is the end of the turn: behind what a preview covers, made or in the
   * making, if the rest is no more than the final result need not hear. Otherwise behind all of it.
   */
  endOf(total: number): number {
    const most = msToSamples(unheardMs(this.endsAtMs), LISTEN_RATE_HZ)
    return [this.newest?.until, this.coming].find((end) => end !== undefined && total - end <= most) ?? total
  }
}
