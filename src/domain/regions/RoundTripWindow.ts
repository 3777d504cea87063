// The round trip to one place, from repeated measurements of which some are disturbed. Pure; used by the router for
// each region.

/** Measurements that count at once. A guess: one disturbed probe does not matter, and a new path is seen after five. */
const size = 5

export class RoundTripWindow {
  private readonly maxAgeMs: number
  /** Oldest first. */
  private readonly samples: Array<{ readonly ms: number; readonly atMs: number }> = []

  /** Measurements older than `maxAgeMs` no longer count. */
  constructor(maxAgeMs: number) {
    this.maxAgeMs = maxAgeMs
  }

  /** Adds a measurement in milliseconds. NaN, infinite and negative ones are ignored. */
  add(ms: number, atMs: number): void {
    if (!Number.isFinite(ms) || ms < 0) return
    this.samples.push({ ms, atMs })
    if (this.samples.length > size) this.samples.shift()
  }

  /**
   * The shortest of the last measurements; undefined where none counts. The shortest and not a mean: queues, a busy
   * processor and lost packets only ever lengthen a round trip.
   */
  shortestMs(nowMs: number): number | undefined {
    const fresh = this.samples.filter(({ atMs }) => nowMs - atMs <= this.maxAgeMs).map(({ ms }) => ms)
    return fresh.length === 0 ? undefined : Math.min(...fresh)
  }
}
