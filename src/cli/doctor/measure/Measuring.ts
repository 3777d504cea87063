// The shared state of a model's measurements: the private node, the load client, the remaining time, and a list of
// incomplete measurements.

import { Effect } from "effect"
import { processorTimes } from "#actors/device/HostProcessor.ts"
import { processorMsOf } from "#actors/device/ProcessorTime.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { rounded } from "#harness/report/Figure.ts"
import type { LoadClient, NotMeasured } from "../load/LoadClient.ts"
import type { Cores } from "../report/Document.ts"
import type { PrivateNode } from "./PrivateNode.ts"

export interface Measuring {
  readonly node: PrivateNode
  readonly client: LoadClient
  readonly model: string
  /** Monotonic time at which the model's share of time ends. */
  readonly endMs: number
  /** Sentences for the report. */
  readonly incomplete: Array<string>
}

/** Time until the model's share ends, at least 0. */
export const leftMs = ({ endMs }: Measuring): Effect.Effect<number> =>
  Effect.map(monotonicMs, (nowMs) => Math.max(0, endMs - nowMs))

/** The result of a measurement, or undefined and a sentence for the report. */
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

/** Processor time used so far, milliseconds: of the engine, of this process, and of all processors together. */
const timesNow = ({ model, node }: Measuring) => {
  const { system, user } = process.cpuUsage()
  const pid = node.registry.find(model)?.host?.gauges().pid
  return {
    atMs: performance.now(),
    engine: pid === undefined ? undefined : processorMsOf(pid),
    own: (system + user) / 1000,
    machine: processorTimes(),
  }
}

/** The result with the processor time used meanwhile. */
export const withCores = <A, E>(
  measuring: Measuring,
  measure: Effect.Effect<A, E>,
): Effect.Effect<{ readonly result: A; readonly cores: Cores }, E> =>
  Effect.gen(function* () {
    const before = timesNow(measuring)
    const result = yield* measure
    const after = timesNow(measuring)
    const tookMs = Math.max(1, after.atMs - before.atMs)
    const engine =
      before.engine === undefined || after.engine === undefined
        ? null
        : (after.engine - before.engine) / tookMs
    const node = (after.own - before.own) / tookMs
    const idleMs = after.machine.idle - before.machine.idle
    const busy = (after.machine.total - before.machine.total - idleMs) / tookMs
    const cores = {
      engine: engine === null ? null : rounded(engine),
      node: rounded(node),
      // The system counts in ticks of 10 ms, so the difference may be slightly negative.
      other: engine === null ? null : rounded(Math.max(0, busy - engine - node)),
    }
    return { result, cores }
  })
