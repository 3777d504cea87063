// Who runs and who waits: slots in use and a bounded first-come line, as plain data structures without I/O.
// EngineHost asks it; one instance per model.

export class WaitingLine<Job> {
  private readonly waiting: Array<Job> = []
  private readonly limit: number
  /** Moving average of how long a request holds its slot, milliseconds; 1 s until one has finished (a guess). */
  private holdMs = 1_000

  constructor(limit: number) {
    this.limit = limit
  }

  get length(): number {
    return this.waiting.length
  }

  /** False when the line is full; the job is then not taken. */
  join(job: Job): boolean {
    if (this.waiting.length >= this.limit) return false
    this.waiting.push(job)
    return true
  }

  shift(): Job | undefined {
    return this.waiting.shift()
  }

  leave(job: Job): boolean {
    const index = this.waiting.indexOf(job)
    if (index < 0) return false
    this.waiting.splice(index, 1)
    return true
  }

  clear(): Array<Job> {
    return this.waiting.splice(0)
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
