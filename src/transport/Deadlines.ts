// One timer for all deadlines of a listener: whoever waits on a peer registers and is asked at every sweep.
// A timer per write or per request would cost more than the write. Knows nothing of HTTP.
import { type Listed, ShortLivedList } from "#domain/queues/UnorderedSet.ts"

export interface Watched extends Listed {
  /** Compares its own state with `nowMs` (the clock of `nowMs()`) and acts; may unwatch itself. */
  readonly sweep: (nowMs: number) => void
}

/** Monotonic milliseconds. Deadlines on real sockets run on real time, not on the Effect clock. */
export const nowMs = (): number => performance.now()

export class Deadlines {
  private readonly watched = new ShortLivedList<Watched>()
  private readonly intervalMs: number
  private timer: NodeJS.Timeout | undefined

  constructor(intervalMs: number) {
    this.intervalMs = intervalMs
  }

  watch(one: Watched): void {
    this.watched.add(one)
    if (this.timer === undefined) {
      this.timer = setInterval(this.sweepAll, this.intervalMs)
      this.timer.unref()
    }
  }

  unwatch(one: Watched): void {
    this.watched.delete(one)
  }

  stop(): void {
    this.watched.clear()
    clearInterval(this.timer)
    this.timer = undefined
  }

  // The timer outlives an empty set until the next sweep, so that short requests do not start and stop it each time.
  private readonly sweepAll = (): void => {
    if (this.watched.size === 0) return this.stop()
    const now = nowMs()
    // Over a copy: a sweep may end others, and one that begins anew must not be asked twice.
    for (const one of this.watched.values()) if (one.listedAt >= 0) one.sweep(now)
  }
}
