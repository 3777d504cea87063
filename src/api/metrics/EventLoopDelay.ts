// How late the node's event loop was recently: the delay of everything that runs on it. Measured by Node's own sampler
// and shown in /metrics.
import { type IntervalHistogram, monitorEventLoopDelay } from "node:perf_hooks"
import { Context, Effect, Layer } from "effect"
import { nowMs } from "#http/RequestContext.ts"

/** Interval of the sampler's timer; it wakes an idle node 50 times a second, which is 0.1 % of a core (a guess). */
const resolutionMs = 20
/** A reading covers at least this long, so that two readers in a row get the same. */
const windowMs = 10_000

interface LoopDelay {
  readonly p50Ms: number
  readonly p99Ms: number
  readonly maxMs: number
}

/** The sampler's values include its own interval. */
const late = (nanoseconds: number): number =>
  Math.max(0, Math.round((nanoseconds / 1e6 - resolutionMs) * 100) / 100)

const read = (sampler: IntervalHistogram): LoopDelay =>
  sampler.count === 0
    ? { p50Ms: 0, p99Ms: 0, maxMs: 0 }
    : { p50Ms: late(sampler.percentile(50)), p99Ms: late(sampler.percentile(99)), maxMs: late(sampler.max) }

export class EventLoopDelay extends Context.Service<
  EventLoopDelay,
  {
    /** Of the last complete window; of the first one while that lasts. */
    readonly reading: () => LoopDelay
  }
>()("edgewise/api/EventLoopDelay") {
  static readonly layer = Layer.effect(
    EventLoopDelay,
    Effect.acquireRelease(
      Effect.sync(() => {
        const sampler = monitorEventLoopDelay({ resolution: resolutionMs })
        sampler.enable()
        return sampler
      }),
      (sampler) => Effect.sync(() => sampler.disable()),
    ).pipe(
      Effect.map((sampler) => {
        let sinceMs = nowMs()
        let last: LoopDelay | undefined
        return {
          reading: () => {
            if (nowMs() - sinceMs < windowMs) return last ?? read(sampler)
            last = read(sampler)
            sampler.reset()
            sinceMs = nowMs()
            return last
          },
        }
      }),
    ),
  )
}
