// The exact sliding-window limiter: at most `limit` admitted requests of a user in ANY rolling window. Called once a
// request by the api's rate limit; holds no clock (the caller passes the time) and knows nothing of replies.
//
// Memory: a user exists from its first admitted request until one to two windows after its last, so idle users cost
// nothing and no sweep ever runs. Two generations of users turn over once a window; who is in neither cannot have an
// admission inside the window. A user's ring of times starts at `firstSlots` and doubles up to `limit`.

export interface Admission {
  readonly admitted: boolean
  /** Requests that would still be admitted now. */
  readonly remaining: number
  /** 0 when admitted; else the time until a next request of this user can be admitted, if none comes between. */
  readonly retryAfterMs: number
  /** Until `remaining` grows again, if nothing else is asked: the oldest request leaves the window. */
  readonly resetMs: number
}

export interface RateWindowOptions {
  /** Requests in a window; 0 turns the limiter off. */
  readonly limit: number
  readonly windowMs?: number
  /**
   * Users remembered at once. One more, who is not remembered yet, is refused until the older generation is dropped:
   * the limiter then fails closed, because forgetting somebody instead would let that user pass the limit.
   */
  readonly maxUsers?: number
}

/** The specification's minute. */
const defaultWindowMs = 60_000
/** A guess at the most users a node will meet in two minutes. With their names they fill 280 MB (measured). */
const defaultMaxUsers = 1_000_000
/** Most users of a node send a handful of requests a minute. A guess. */
const firstSlots = 4

/** Times of admitted requests, oldest first, in a ring. */
class Ring {
  #times: Array<number>
  #head = 0
  count = 0

  constructor(slots: number) {
    this.#times = new Array<number>(slots).fill(0)
  }

  oldest(): number {
    return this.#times[this.#head]!
  }

  dropUntil(timeMs: number): void {
    while (this.count > 0 && this.oldest() <= timeMs) {
      this.#head = (this.#head + 1) % this.#times.length
      this.count--
    }
  }

  push(timeMs: number, maxSlots: number): void {
    const slots = this.#times.length
    if (this.count === slots) {
      const grown = new Array<number>(Math.min(slots * 2, maxSlots)).fill(0)
      for (let i = 0; i < slots; i++) grown[i] = this.#times[(this.#head + i) % slots]!
      this.#times = grown
      this.#head = 0
    }
    this.#times[(this.#head + this.count) % this.#times.length] = timeMs
    this.count++
  }
}

const refused = (retryAfterMs: number): Admission => ({
  admitted: false,
  remaining: 0,
  retryAfterMs,
  resetMs: retryAfterMs,
})

export class SlidingWindowLimiter {
  readonly #limit: number
  readonly #windowMs: number
  readonly #maxUsers: number
  #young = new Map<string, Ring>()
  #old = new Map<string, Ring>()
  #turnedMs = Number.NEGATIVE_INFINITY
  #nowMs = Number.NEGATIVE_INFINITY

  constructor(options: RateWindowOptions) {
    this.#limit = options.limit
    this.#windowMs = options.windowMs ?? defaultWindowMs
    this.#maxUsers = options.maxUsers ?? defaultMaxUsers
  }

  /** Users that cost memory at present. */
  get users(): number {
    return this.#young.size + this.#old.size
  }

  /** Decides about one request of a user and counts it if admitted. Times that go backwards are read as "now". */
  admit(user: string, atMs: number): Admission {
    if (this.#limit === 0) {
      return { admitted: true, remaining: Number.POSITIVE_INFINITY, retryAfterMs: 0, resetMs: 0 }
    }
    const nowMs = Math.max(atMs, this.#nowMs)
    this.#nowMs = nowMs
    this.#turn(nowMs)

    const ring = this.#recall(user)
    if (ring === undefined) {
      return refused(this.#turnedMs + this.#windowMs - nowMs)
    }
    ring.dropUntil(nowMs - this.#windowMs)
    if (ring.count >= this.#limit) return refused(ring.oldest() + this.#windowMs - nowMs)
    ring.push(nowMs, this.#limit)
    const resetMs = ring.oldest() + this.#windowMs - nowMs
    return { admitted: true, remaining: this.#limit - ring.count, retryAfterMs: 0, resetMs }
  }

  #turn(nowMs: number): void {
    if (nowMs - this.#turnedMs < this.#windowMs) return
    // After two quiet windows even the young generation is out of every window.
    this.#old = nowMs - this.#turnedMs < 2 * this.#windowMs ? this.#young : new Map()
    this.#young = new Map()
    this.#turnedMs = nowMs
  }

  /** The user's ring, in the young generation; undefined where there is no room for a user not seen lately. */
  #recall(user: string): Ring | undefined {
    const young = this.#young.get(user)
    if (young !== undefined) return young
    const old = this.#old.get(user)
    if (old !== undefined) this.#old.delete(user)
    else if (this.users >= this.#maxUsers) return undefined
    const ring = old ?? new Ring(Math.min(firstSlots, this.#limit))
    this.#young.set(user, ring)
    return ring
  }
}
