// When the audio that a conversation has sent is played at the client: it plays what has come at its own pace and waits
// where nothing has. Pure; the caller passes the time. The client's network and its buffer are not known here, so audio counts
// as played that much earlier than it is.

/** Follows what is played. */
interface PlayTap {
  /** Audio that is played from `startMs` on. */
  readonly sent: (samples: Int16Array, startMs: number, nowMs: number) => void
  /** Nothing is played from now on. */
  readonly stopped: (nowMs: number) => void
}

export class PlayClock {
  readonly #rateHz: number
  readonly #tap: PlayTap | undefined
  /** Samples sent since the start of the conversation. */
  #total = 0
  /** The time at which all of them will have been played. */
  #endMs = Number.NEGATIVE_INFINITY

  /** `rateHz`: samples a second of the audio that is sent. */
  constructor(rateHz: number, tap?: PlayTap) {
    this.#rateHz = rateHz
    this.#tap = tap
  }

  /** Without those that are never played. */
  get sentSamples(): number {
    return this.#total
  }

  /** Until when the audio sent so far is played. */
  get playedUntilMs(): number {
    return this.#endMs
  }

  /** `audio`: those samples, for the tap. */
  sent(samples: number, nowMs: number, audio?: Int16Array): void {
    this.#total += samples
    const startMs = Math.max(this.#endMs, nowMs)
    this.#endMs = startMs + (samples * 1000) / this.#rateHz
    if (audio !== undefined) this.#tap?.sent(audio, startMs, nowMs)
  }

  /** Of all samples sent, how many have been played. */
  playedSamples(nowMs: number): number {
    const aheadMs = Math.max(0, this.#endMs - nowMs)
    return Math.max(0, this.#total - Math.round((aheadMs * this.#rateHz) / 1000))
  }

  /** The client has stopped playing: what it has not played yet, it never plays. */
  stopped(nowMs: number): void {
    this.#total = this.playedSamples(nowMs)
    this.#endMs = Math.min(this.#endMs, nowMs)
    this.#tap?.stopped(nowMs)
  }
}
