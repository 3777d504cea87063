// How much of an engine its live sessions take, by measurement, and whether it has room for one more. Pure but for its
// own counters; time comes in as numbers. LiveDesk owns one a model.
//
// By the utilization law the work a window costs is the engine's busy time divided by the windows it finished,
// whatever waited for what. Other work on the same engine makes windows take longer, and so counts as less room.

/**
 * Share of the engine that live sessions may fill. A guess: no line grows without bound even at 1, because a session
 * waits with one window at most; a tenth is left for last words and everybody else.
 */
export const fullShare = 0.9

/** Work of one window before any was measured, milliseconds: the demonstration model takes 20 to 50 of a busy core. */
const assumedWindowMs = 20

/** The newest sixteenth counts as much as all before it: a change of load is seen after some ten windows. */
const smoothing = 1 / 16

/** A session that sent audio (or began) this recently is one that speaks. Longer than a pause between packets. */
export const speakingMs = 2_000

/** What the ledger looks at in a session. */
export interface Speaker {
  /** Seconds of audio between two hypotheses. */
  readonly windowSeconds: number
  /** When it last sent audio, or when it began. */
  readonly heardAtMs: number
}

export class LiveLoad {
  private readonly speakers = new Set<Speaker>()
  private running = 0
  private busySinceMs = 0
  /** Busy time that no finished window has been charged with yet. */
  private unchargedMs = 0
  private measuredMs: number | undefined

  /** Work of one window, milliseconds. */
  get windowMs(): number {
    return this.measuredMs ?? assumedWindowMs
  }

  get sessions(): number {
    return this.speakers.size
  }

  /** A call of the engine begins. */
  began(nowMs: number): void {
    if (this.running === 0) this.busySinceMs = nowMs
    this.running++
  }

  /** A call of the engine ended, for whatever reason. */
  ended(nowMs: number): void {
    this.charge(nowMs)
    this.running--
  }

  /**
   * A session has a new hypothesis, after so many calls. Two are a window's: a piece that closes, and the open rest.
   * More are a backlog, which says nothing about what a window costs: its work is left out.
   */
  windowDone(nowMs: number, calls: number): void {
    if (this.running > 0) this.charge(nowMs)
    const costMs = this.unchargedMs
    this.unchargedMs = 0
    if (calls > 2) return
    this.measuredMs =
      this.measuredMs === undefined ? costMs : this.measuredMs + (costMs - this.measuredMs) * smoothing
  }

  private charge(nowMs: number): void {
    this.unchargedMs += nowMs - this.busySinceMs
    this.busySinceMs = nowMs
  }

  /** Share of the engine that the sessions take which speak now, `except` left out; 1 is all of it. */
  share(nowMs: number, except?: Speaker): number {
    let windowsPerSecond = 0
    for (const speaker of this.speakers) {
      const { heardAtMs, windowSeconds } = speaker
      if (speaker !== except && nowMs - heardAtMs < speakingMs) windowsPerSecond += 1 / windowSeconds
    }
    return (windowsPerSecond * this.windowMs) / 1000
  }

  /**
   * Takes a session in, or says no. The first is always taken: no other is disturbed. `replaced` is a session that leaves as
   * soon as this one has entered, and is not counted beside it.
   */
  enter(speaker: Speaker, nowMs: number, replaced?: Speaker): boolean {
    const share = this.share(nowMs, replaced)
    if (share > 0 && share + this.windowMs / 1000 / speaker.windowSeconds > fullShare) return false
    this.speakers.add(speaker)
    return true
  }

  leave(speaker: Speaker): void {
    this.speakers.delete(speaker)
  }
}
