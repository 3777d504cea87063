// How much audio a caller's sockets may send: each 120 s at once, then three times real time. Pure.
//
// All sockets of a user together may send the sum of that; there is no smaller limit for a user, so a key that serves a whole app is not
// limited by it. But a socket that is opened after another has closed must not begin with 120 s again, or opening sockets in turn would be
// free. So a closed socket leaves its allowance behind, and the user's next one goes on with it: a user has as many allowances as sockets
// were open at the same time.
import { type Allowance, TokenBucket } from "./TokenBucket.ts"

/**
 * Seconds of audio. 120 s are a whole live session (protocol 10.4), which may come at once. Three times real time is a guess: a client
 * that was cut off for a minute has caught up after 30 s.
 */
export const audioAllowance: Allowance = { burst: 120, perSecond: 3 }

/** After this an allowance is full, whatever it was: as good as a new one. */
const fullAfterMs = (audioAllowance.burst / audioAllowance.perSecond) * 1_000

interface Left {
  readonly user: string
  readonly atMs: number
}

export class AudioAllowances {
  /** Allowances of closed sockets, the one that was left first at the front. */
  readonly #left = new Map<TokenBucket, Left>()

  /** Allowances that are remembered. */
  get remembered(): number {
    return this.#left.size
  }

  /** The allowance of a socket that opens: the largest that a closed one of the user has left. */
  enter(user: string, nowMs: number): TokenBucket {
    this.#forgetFull(nowMs)
    let largest: TokenBucket | undefined
    for (const [bucket, { user: owner }] of this.#left) {
      if (owner !== user) continue
      if (largest === undefined || bucket.available(nowMs) > largest.available(nowMs)) largest = bucket
    }
    if (largest === undefined) return new TokenBucket(audioAllowance, nowMs)
    this.#left.delete(largest)
    return largest
  }

  /** The socket has closed. */
  leave(user: string, bucket: TokenBucket, nowMs: number): void {
    this.#forgetFull(nowMs)
    this.#left.set(bucket, { user, atMs: nowMs })
  }

  #forgetFull(nowMs: number): void {
    for (const [bucket, { atMs }] of this.#left) {
      if (nowMs - atMs < fullAfterMs) return
      this.#left.delete(bucket)
    }
  }
}
