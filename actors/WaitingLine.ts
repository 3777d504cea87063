// Who waits for a slot: a bounded first-come line, and behind it the line of those in no hurry. Plain data, no I/O.
// EngineHost asks it; one instance per model.

export class WaitingLine<Job> {
  private readonly waiting: Array<Job> = []
  private readonly background: Array<Job> = []
  private readonly limit: number
  /** Moving average of how long a request holds its slot, milliseconds; 1 s until one has finished (a guess). */
  private holdMs = 1_000

  constructor(limit: number) {
    this.limit = limit
  }

  get length(): number {
    return this.waiting.length + this.background.length
  }

  /** False when the line is full; the job is then not taken. Each line has the limit to itself. */
  join(job: Job, background: boolean): boolean {
    const line = background ? this.background : this.waiting
    if (line.length >= this.limit) return false
    line.push(job)
    return true
  }

  /** The next to be served: background work only while nobody else waits, and where it is allowed at all. */
  shift(backgroundAllowed: boolean): Job | undefined {
    return this.waiting.shift() ?? (backgroundAllowed ? this.background.shift() : undefined)
  }

  leave(job: Job): boolean {
    for (const line of [this.waiting, this.background]) {
      const index = line.indexOf(job)
      if (index >= 0) return line.splice(index, 1).length > 0
    }
    return false
  }

  clear(): Array<Job> {
    return [...this.waiting.splice(0), ...this.background.splice(0)]
  }

  /** Takes note of a finished request: the newest eighth counts as much as all before it. */
  observe(heldMs: number): void {
    this.holdMs += (heldMs - this.holdMs) / 8
  }

  /** When a newcomer may expect a place, given `slots` that serve side by side: 1 s to 60 s. */
  retryAfterMs(slots: number): number {
    const rounds = (this.waiting.length + 1) / Math.max(1, slots)
    return Math.min(60_000, Math.max(1_000, rounds * this.holdMs))
  }
}
