// An exact sliding-window rate limiter: at most `limit` admitted requests per user in ANY window of that length. The
// caller passes the time.
//
// Memory: a user is kept from the first admitted request until one to two windows after the last one, so idle users
// cost nothing and no sweep is needed. Users are kept in two generations that are exchanged once a window; a user in
// neither cannot have an admission within the window. A user's ring of times starts at `firstSlots` and doubles up to
// `limit`.

export interface Admission {
  readonly admitted: boolean
  /** Requests that would still be admitted now. */
  readonly remaining: number
  /** 0 if admitted; else the time until the next request of this user can be admitted, if none comes in between. */
  readonly retryAfterMs: number
  /** Time until `remaining` grows, if no request comes in between: then the oldest request leaves the window. */
  readonly resetMs: number
}

interface RateWindowOptions {
  /** Requests per window; 0 turns the limiter off. */
  readonly limit: number
  readonly windowMs?: number
  /**
   * Users kept at once. A further user is refused until the older generation is dropped: dropping another user instead
   * would let that user exceed the limit.
   */
  readonly maxUsers?: number
}

/** Protocol 4.1. */
const defaultWindowMs = 60_000
/** A guess at the most users of a node in two minutes. With their names they take 280 MB (measured). */
const defaultMaxUsers = 1_000_000
/** Most users of a node send a few requests a minute. A guess. */
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
  #exchangedMs = Number.NEGATIVE_INFINITY
  #nowMs = Number.NEGATIVE_INFINITY

  constructor(options: RateWindowOptions) {
    this.#limit = options.limit
    this.#windowMs = options.windowMs ?? defaultWindowMs
    this.#maxUsers = options.maxUsers ?? defaultMaxUsers
  }

  /** Users that take memory at present. */
  get users(): number {
    return this.#young.size + this.#old.size
  }

  /**
   * Decides about one request of a user, and counts it if admitted. A time that goes backwards is taken as the latest
   * one.
   */
  admit(user: string, atMs: number): Admission {
    if (this.#limit === 0) {
      return { admitted: true, remaining: Number.POSITIVE_INFINITY, retryAfterMs: 0, resetMs: 0 }
    }
    const nowMs = Math.max(atMs, this.#nowMs)
    this.#nowMs = nowMs
    this.#exchange(nowMs)

    const ring = this.#recall(user)
    if (ring === undefined) {
      return refused(this.#exchangedMs + this.#windowMs - nowMs)
    }
    ring.dropUntil(nowMs - this.#windowMs)
    if (ring.count >= this.#limit) return refused(ring.oldest() + this.#windowMs - nowMs)
    ring.push(nowMs, this.#limit)
    const resetMs = ring.oldest() + this.#windowMs - nowMs
    return { admitted: true, remaining: this.#limit - ring.count, retryAfterMs: 0, resetMs }
  }

  #exchange(nowMs: number): void {
    if (nowMs - this.#exchangedMs < this.#windowMs) return
    // After two windows without a request, the young generation has left every window too.
    this.#old = nowMs - this.#exchangedMs < 2 * this.#windowMs ? this.#young : new Map()
    this.#young = new Map()
    this.#exchangedMs = nowMs
  }

  /** The user's ring, moved to the young generation. Undefined if the user is new and the table is full. */
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
