// When the audio that a conversation has sent is played at the client: it plays what has come at its own pace and waits
// where nothing has. Pure; the caller passes the time. How long audio takes to the client and through its buffer is known of calls only;
// elsewhere audio counts as played that much earlier than it is.

/** Follows what is played. */
interface PlayTap {
  /** Audio that is played from `startMs` on. */
  readonly sent: (samples: Int16Array, startMs: number, nowMs: number) => void
  /** Nothing is played from now on. */
  readonly stopped: (nowMs: number) => void
}

/** Audio that is played without a pause. */
interface Run {
  readonly startMs: number
  /** Samples that were sent before it. */
  readonly before: number
}

export class PlayClock {
  readonly #rateHz: number
  readonly #tap: PlayTap | undefined
  readonly #delayMs: () => number
  /** Samples sent since the start of the conversation. */
  #total = 0
  /** The time at which all of them will have been played. */
  #endMs = Number.NEGATIVE_INFINITY
  /** The run that is being played or was played last, and those that begin later. */
  #runs: ReadonlyArray<Run> = []

  /**
   * @param rateHz samples a second of the audio that is sent
   * @param delayMs from the sending of audio until it is played, where nothing is played before it
   */
  constructor(rateHz: number, tap?: PlayTap, delayMs: () => number = () => 0) {
    this.#rateHz = rateHz
    this.#tap = tap
    this.#delayMs = delayMs
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
    const startMs = Math.max(this.#endMs, nowMs + this.#delayMs())
    if (startMs > this.#endMs) this.#runs = [...this.#runsFrom(nowMs), { startMs, before: this.#total }]
    this.#total += samples
    this.#endMs = startMs + (samples * 1000) / this.#rateHz
    if (audio !== undefined) this.#tap?.sent(audio, startMs, nowMs)
  }

  /** Of all samples sent, how many have been played. */
  playedSamples(nowMs: number): number {
    const [run, next] = this.#runsFrom(nowMs)
    if (run === undefined) return this.#total
    const played = run.before + Math.round(((nowMs - run.startMs) * this.#rateHz) / 1000)
    return Math.max(run.before, Math.min(played, next?.before ?? this.#total))
  }

  /** The run that is being played, or will be next, and those behind it. */
  #runsFrom(nowMs: number): ReadonlyArray<Run> {
    const at = this.#runs.findLastIndex(({ startMs }) => startMs <= nowMs)
    return at <= 0 ? this.#runs : this.#runs.slice(at)
  }

  /** The client says that it has played so many of all samples sent, and nothing of those behind. */
  played(samples: number, nowMs: number): void {
    if (samples > this.#total || samples < this.playedSamples(nowMs) - this.#rateHz) return
    this.#runs = [{ startMs: nowMs, before: samples }]
    this.#endMs = nowMs + ((this.#total - samples) * 1000) / this.#rateHz
  }

  /** The client has stopped playing: what it has not played yet, it never plays. */
  stopped(nowMs: number): void {
    this.#total = this.playedSamples(nowMs)
    this.#endMs = Math.min(this.#endMs, nowMs)
    this.#runs = this.#runsFrom(nowMs).slice(0, 1)
    this.#tap?.stopped(nowMs)
  }
}
