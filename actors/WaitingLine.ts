// Who waits for a slot: a bounded line that is fair by user, and behind it the line of those in no hurry. Plain data, no
// I/O. EngineHost asks it; one instance per load of a model.
//
// Users take turns: between two requests of one user everybody else who waits has had one. A full line makes room for a
// user who has fewer waiting than somebody else, at that one's expense, so that a flood fills its own share only.

export type Joined<Job> =
  | {
      readonly taken: true /** Somebody else's request that has lost its place. */
      readonly displaced: Job | undefined
    }
  | { readonly taken: false }

/** Longest wait that is announced: beyond it nobody's measurements hold. A guess. */
const maxRetryAfterMs = 300_000

export class WaitingLine<Job> {
  /** In the order of their turns: whoever was served goes to the end. No empty lists. */
  private readonly users = new Map<string, Array<Job>>()
  private readonly background: Array<Job> = []
  private readonly limit: number
  private inPerson = 0
  /** Moving average of how long a request holds its slot, milliseconds; 1 s until one has finished (a guess). */
  private holdMs = 1_000

  constructor(limit: number) {
    this.limit = limit
  }

  get length(): number {
    return this.inPerson + this.background.length
  }

  /** Each of the two lines has the limit to itself. */
  join(job: Job, user: string, background: boolean): Joined<Job> {
    if (background) {
      if (this.background.length >= this.limit) return { taken: false }
      this.background.push(job)
      return { taken: true, displaced: undefined }
    }
    let displaced: Job | undefined
    if (this.inPerson >= this.limit) {
      const longest = this.longest()
      if (longest === undefined || longest.length <= this.waitingOf(user) + 1) return { taken: false }
      // The newest: it has waited least. Its list does not become empty, having been longer than one.
      displaced = longest.pop()
      this.inPerson--
    }
    const own = this.users.get(user)
    if (own === undefined) this.users.set(user, [job])
    else own.push(job)
    this.inPerson++
    return { taken: true, displaced }
  }

  /** The next to be served: background work only while nobody else waits, and where it is allowed at all. */
  shift(backgroundAllowed: boolean): Job | undefined {
    const next = this.users.entries().next()
    if (next.done === true) return backgroundAllowed ? this.background.shift() : undefined
    const [user, jobs] = next.value
    const job = jobs.shift()
    this.inPerson--
    this.users.delete(user)
    if (jobs.length > 0) this.users.set(user, jobs)
    return job
  }

  leave(job: Job): boolean {
    const at = this.background.indexOf(job)
    if (at >= 0) return this.background.splice(at, 1).length > 0
    for (const [user, jobs] of this.users) {
      const index = jobs.indexOf(job)
      if (index < 0) continue
      jobs.splice(index, 1)
      if (jobs.length === 0) this.users.delete(user)
      this.inPerson--
      return true
    }
    return false
  }

  clear(): Array<Job> {
    const all = [...[...this.users.values()].flat(), ...this.background.splice(0)]
    this.users.clear()
    this.inPerson = 0
    return all
  }

  /** Takes note of a finished request: the newest eighth counts as much as all before it. */
  observe(heldMs: number): void {
    this.holdMs += (heldMs - this.holdMs) / 8
  }

  /**
   * When one more request of this user could begin, given `slots` that serve side by side, by what requests have taken so
   * far: everybody whose turn comes before it, and itself. 1 s to 5 minutes.
   */
  retryAfterMs(slots: number, user: string): number {
    const own = this.waitingOf(user)
    let ahead = own
    // Whoever's turn comes before this user's has one more of them before the newcomer's.
    let turns = own + 1
    for (const [other, jobs] of this.users) {
      if (other === user) turns = own
      else ahead += Math.min(jobs.length, turns)
    }
    const rounds = (ahead + 1) / Math.max(1, slots)
    return Math.min(maxRetryAfterMs, Math.max(1_000, rounds * this.holdMs))
  }

  private waitingOf(user: string): number {
    return this.users.get(user)?.length ?? 0
  }

  private longest(): Array<Job> | undefined {
    let longest: Array<Job> | undefined
    for (const jobs of this.users.values()) if (jobs.length > (longest?.length ?? 0)) longest = jobs
    return longest
  }
}
