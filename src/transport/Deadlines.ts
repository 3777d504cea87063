// One timer for all deadlines of a listener: watched objects are swept at an interval. A timer per write or per request
// would cost more than the write.
import { type Listed, UnorderedSet } from "#domain/queues/UnorderedSet.ts"

export interface Watched extends Listed {
  /** Compares its own state with `nowMs` (from `nowMs()`) and acts on it. May unwatch itself. */
  readonly sweep: (nowMs: number) => void
}

/** Monotonic milliseconds of the machine, not of the Effect clock: deadlines of sockets run in real time. */
export const nowMs = (): number => performance.now()

export class Deadlines {
  readonly #watched = new UnorderedSet<Watched>()
  readonly #intervalMs: number
  #timer: NodeJS.Timeout | undefined

  constructor(intervalMs: number) {
    this.#intervalMs = intervalMs
  }

  watch(one: Watched): void {
    this.#watched.add(one)
    if (this.#timer === undefined) {
      this.#timer = setInterval(this.#sweepAll, this.#intervalMs)
      this.#timer.unref()
    }
  }

  unwatch(one: Watched): void {
    this.#watched.delete(one)
  }

  stop(): void {
    this.#watched.clear()
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  // The timer runs on until the first sweep that finds nothing watched, so that short requests do not start and stop it
  // each time.
  readonly #sweepAll = (): void => {
    if (this.#watched.size === 0) return this.stop()
    const now = nowMs()
    // Iterates over a copy: a sweep may unwatch others, and an object that is watched again must not be swept twice.
    for (const one of this.#watched.values()) if (one.listedAt >= 0) one.sweep(now)
  }
}
