// The round trip to one region from repeated measurements, some of which are disturbed. Pure.

/** Number of measurements used. A guess: one disturbed probe does not matter, and a new path shows after five. */
const size = 5

export class RoundTripWindow {
  readonly #maxAgeMs: number
  /** Oldest first. */
  readonly #samples: Array<{ readonly ms: number; readonly atMs: number }> = []

  /** Measurements older than `maxAgeMs` do not count. */
  constructor(maxAgeMs: number) {
    this.#maxAgeMs = maxAgeMs
  }

  /** Adds a measurement in milliseconds. NaN, infinite and negative ones are ignored. */
  add(ms: number, atMs: number): void {
    if (!Number.isFinite(ms) || ms < 0) return
    this.#samples.push({ ms, atMs })
    if (this.#samples.length > size) this.#samples.shift()
  }

  /**
   * The shortest of the last measurements. Undefined if there is none. Not a mean, because queues, a busy processor and
   * lost packets only ever lengthen a round trip.
   */
  shortestMs(nowMs: number): number | undefined {
    const fresh = this.#samples.filter(({ atMs }) => nowMs - atMs <= this.#maxAgeMs).map(({ ms }) => ms)
    return fresh.length === 0 ? undefined : Math.min(...fresh)
  }
}
