// What every measurement of a model needs: the private node, the load client, the time that is left, and a list of what was not
// measured to its end.
import { Effect } from "effect"
import { monotonicMs } from "#domain/Monotonic.ts"
import type { LoadClient, NotMeasured } from "../load/LoadClient.ts"
import { cpuMsOf } from "./EngineProcessFacts.ts"
import type { PrivateNode } from "./PrivateNode.ts"

export interface Measuring {
  readonly node: PrivateNode
  readonly client: LoadClient
  readonly model: string
  /** Monotonic time at which the model's share is used up. */
  readonly endMs: number
  /** Sentences for the report. */
  readonly incomplete: Array<string>
}

/** Time until the model's share is used up, at least 0. */
export const leftMs = ({ endMs }: Measuring): Effect.Effect<number> =>
  Effect.map(monotonicMs, (nowMs) => Math.max(0, endMs - nowMs))

/** A measurement, or undefined and a sentence about it. */
export const attempt = <A>(
  measuring: Measuring,
  what: string,
  measure: Effect.Effect<A, NotMeasured>,
): Effect.Effect<A | undefined> =>
  Effect.catch(measure, ({ problem }) =>
    Effect.sync(() => {
      measuring.incomplete.push(`${what}: ${problem}`)
      return undefined
    }),
  )

/** The same with the processor time a second that the model's engine used meanwhile; null where the system does not tell. */
export const withCores = <A, E>(
  { model, node }: Measuring,
  measure: Effect.Effect<A, E>,
): Effect.Effect<{ readonly result: A; readonly cores: number | null }, E> =>
  Effect.gen(function* () {
    const pid = node.registry.find(model)?.host?.gauges().pid
    const beforeMs = cpuMsOf(pid)
    const beganMs = yield* monotonicMs
    const result = yield* measure
    const tookMs = (yield* monotonicMs) - beganMs
    const afterMs = cpuMsOf(pid)
    const isKnown = beforeMs !== undefined && afterMs !== undefined && tookMs > 0
    return { result, cores: isKnown ? (afterMs - beforeMs) / tookMs : null }
  })
