// The queue of requests for a few places (slots of an engine, decoder processes). It is bounded and fair between users;
// live sessions come first, background work last (protocol 4.5). Plain data, no I/O.
//
// Users are served in rotation: between two requests of one user, every other user in the queue has had one. If the
// queue is full, a request of a user with fewer waiting requests than another user is accepted, and that other user's
// newest request is refused instead. So a flood only fills its own share. A request that continues admitted work (the
// next window of a file) is never refused or displaced. It does not count against the limit, because each admitted file
// has at most one window waiting.

/** In order of priority: a live session, a request whose client waits for the answer, a job. */
export type Urgency = "live" | "interactive" | "background"

export interface Place {
  readonly user: string
  readonly urgency: Urgency
  /** True if it is part of work that was admitted before. */
  readonly continues: boolean
}

type Joined<Job> =
  | {
      readonly taken: true
      /** Another user's request, which was removed from the queue. */
      readonly displaced: Job | undefined
    }
  | { readonly taken: false }

/** The kinds of requests that may start now. Live sessions always may. */
export interface Allowed {
  readonly interactive: boolean
  readonly background: boolean
  /** True if an interactive request goes before a live session this time. */
  readonly interactiveFirst?: boolean
}

/** True if a request must wait for a reason of its own, although its kind may start. */
type Held<Job> = (job: Job) => boolean

const isFree = (): boolean => false

const takeFirst = <Job>(queue: Array<Job>, held: Held<Job>): Job | undefined => {
  const at = queue.findIndex((job) => !held(job))
  return at < 0 ? undefined : queue.splice(at, 1)[0]
}

interface Entry<Job> {
  readonly job: Job
  readonly continues: boolean
}

/** Longest wait that is announced, milliseconds: measurements cannot predict longer ones. A guess. */
const maxRetryAfterMs = 300_000

export class FairQueue<Job> {
  /** Interactive requests by user, in the order of service: a served user goes to the end. No empty lists. */
  readonly #users = new Map<string, Array<Entry<Job>>>()
  readonly #live: Array<Job> = []
  readonly #background: Array<Job> = []
  readonly #limit: number
  #interactive = 0
  /** Interactive requests that count against the limit. */
  #fresh = 0
  /** Moving average of the time that a request holds its slot, milliseconds; 1 s until one has finished (a guess). */
  #holdMs = 1_000

  constructor(limit: number) {
    this.#limit = limit
  }

  get length(): number {
    return this.#live.length + this.#interactive + this.#background.length
  }

  /** True if an interactive request waits that is not held. */
  hasInteractive(held: Held<Job> = isFree): boolean {
    if (this.#interactive === 0 || held === isFree) return this.#interactive > 0
    for (const entries of this.#users.values()) if (entries.some(({ job }) => !held(job))) return true
    return false
  }

  /** The limit applies to interactive and to background requests separately. Live sessions have their own admission. */
  join(job: Job, { continues, urgency, user }: Place): Joined<Job> {
    if (urgency === "live") {
      this.#live.push(job)
      return { taken: true, displaced: undefined }
    }
    if (urgency === "background") {
      if (this.#background.length >= this.#limit) return { taken: false }
      this.#background.push(job)
      return { taken: true, displaced: undefined }
    }
    let displaced: Job | undefined
    if (!continues && this.#fresh >= this.#limit) {
      const longest = this.#longest()
      if (longest === undefined || longest.length <= this.#waitingOf(user) + 1) return { taken: false }
      // The newest, because it has waited least. The list does not become empty, because it was longer than one.
      const [last] = longest.splice(
        longest.findLastIndex((entry) => !entry.continues),
        1,
      )
      displaced = last?.job
      this.#interactive--
      this.#fresh--
    }
    const own = this.#users.get(user)
    if (own === undefined) this.#users.set(user, [{ job, continues }])
    else own.push({ job, continues })
    this.#interactive++
    if (!continues) this.#fresh++
    return { taken: true, displaced }
  }

  /** The user of the next interactive request. */
  get nextUser(): string | undefined {
    return this.#users.keys().next().value
  }

  /**
   * Removes and returns the next request: a live session, an interactive request, then background work, each if
   * allowed. Held requests keep their places.
   */
  shift(
    { background, interactive, interactiveFirst = false }: Allowed,
    held: Held<Job> = isFree,
  ): Job | undefined {
    const interactiveNext = (): Job | undefined => (interactive ? this.#shiftInteractive(held) : undefined)
    const first = interactiveFirst ? interactiveNext() : takeFirst(this.#live, held)
    if (first !== undefined) return first
    const second = interactiveFirst ? takeFirst(this.#live, held) : interactiveNext()
    // Background work starts only while no interactive request waits, even if none may start at present.
    return second ?? (background && this.#interactive === 0 ? takeFirst(this.#background, held) : undefined)
  }

  #shiftInteractive(held: Held<Job>): Job | undefined {
    for (const [user, entries] of this.#users) {
      const at = entries.findIndex(({ job }) => !held(job))
      if (at < 0) continue
      const [entry] = entries.splice(at, 1)
      this.#removed(entry)
      this.#users.delete(user)
      if (entries.length > 0) this.#users.set(user, entries)
      return entry?.job
    }
    return undefined
  }

  #removed(entry: Entry<Job> | undefined): void {
    this.#interactive--
    if (entry?.continues === false) this.#fresh--
  }

  leave(job: Job): boolean {
    for (const queue of [this.#live, this.#background]) {
      const at = queue.indexOf(job)
      if (at >= 0) return queue.splice(at, 1).length > 0
    }
    for (const [user, entries] of this.#users) {
      const index = entries.findIndex((entry) => entry.job === job)
      if (index < 0) continue
      this.#removed(entries.splice(index, 1)[0])
      if (entries.length === 0) this.#users.delete(user)
      return true
    }
    return false
  }

  clear(): Array<Job> {
    const interactive = [...this.#users.values()].flat().map(({ job }) => job)
    const all = [...this.#live.splice(0), ...interactive, ...this.#background.splice(0)]
    this.#users.clear()
    this.#interactive = 0
    this.#fresh = 0
    return all
  }

  /** Records how long a finished request held its slot. Each new value has a weight of one eighth. */
  observe(heldMs: number): void {
    this.#holdMs += (heldMs - this.#holdMs) / 8
  }

  /**
   * Estimated time until one more request of this user could start, given `slots` parallel slots: the time of all
   * requests that come before it, and its own. 1 s to 5 minutes.
   */
  retryAfterMs(slots: number, user: string): number {
    const own = this.#waitingOf(user)
    let ahead = own
    // A user that is served before this user has one more request before the new one.
    let served = own + 1
    for (const [other, entries] of this.#users) {
      if (other === user) served = own
      else ahead += Math.min(entries.length, served)
    }
    const rounds = (ahead + 1) / Math.max(1, slots)
    return Math.min(maxRetryAfterMs, Math.max(1_000, rounds * this.#holdMs))
  }

  #waitingOf(user: string): number {
    return this.#users.get(user)?.length ?? 0
  }

  /** The longest list of a user that has a request which may be displaced. */
  #longest(): Array<Entry<Job>> | undefined {
    let longest: Array<Entry<Job>> | undefined
    for (const entries of this.#users.values()) {
      if (entries.length > (longest?.length ?? 0) && entries.some(({ continues }) => !continues))
        longest = entries
    }
    return longest
  }
}
