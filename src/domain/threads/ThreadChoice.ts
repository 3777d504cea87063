// The CPU threads of a model and their origin: measured at its load, kept from an earlier load, or set by the catalog.
// Plain data: engines send it with their facts, the node stores it in a file and shows it to operators.
import * as Schema from "effect/Schema"

const Count = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 65_536 }))

/** Measured times of one kind of work, and the chosen number of threads. */
export const ThreadWork = Schema.Struct({
  /** Tokens of one step. Absent for engines whose thread count does not depend on the work. */
  tokens: Schema.optionalKey(Count),
  threads: Count,
  /** Median milliseconds by thread count. Empty if nothing was measured. */
  ms: Schema.Record(Schema.String.check(Schema.isPattern(/^\d{1,5}$/)), Schema.Finite),
})
export type ThreadWork = typeof ThreadWork.Type

export const ThreadChoice = Schema.Struct({
  /**
   * `catalog`: `runtime.threads`. `measured`: at this load. `kept`: at an earlier load with the same weights on the
   * same machine. `size`: small work runs on one thread, or the machine was too busy to measure.
   */
  source: Schema.Literals(["catalog", "measured", "kept", "size"]),
  /** Ascending by tokens, at least one. */
  works: Schema.NonEmptyArray(ThreadWork).check(Schema.isMaxLength(16)),
})
export type ThreadChoice = typeof ThreadChoice.Type

/** What an engine may measure. */
export interface ThreadTrial {
  /** Counts to try, ascending, beginning with 1. */
  readonly counts: ReadonlyArray<number>
  /** The count for large weights if nothing can be measured. */
  readonly otherwise: number
  /** The result of an earlier load. */
  readonly kept?: ThreadChoice
  /** ONNX engines: true if there is memory for a second copy of the weights, in sessions with fewer threads. */
  readonly narrows?: boolean
}

/** Threads of an ONNX engine's second sessions, used while other models work: half of them. */
export const narrowThreads = (threads: number): number => Math.max(1, Math.floor(threads / 2))

/** The same number for all work. */
export const fixedThreads = (threads: number, source: ThreadChoice["source"]): ThreadChoice => ({
  source,
  works: [{ threads, ms: {} }],
})

/** Most threads that it uses. */
export const mostOf = ({ works }: ThreadChoice): number => Math.max(...works.map(({ threads }) => threads))

/** Threads for a step of so many tokens: those of the measured size that is nearest by ratio. */
export const threadsFor = ({ works }: ThreadChoice, tokens: number): number => {
  const distance = (work: ThreadWork) => Math.abs(Math.log2((work.tokens ?? 1) / tokens))
  return works.reduce((best, work) => (distance(work) < distance(best) ? work : best)).threads
}

/** For example `1 (1 token), 2 (8 tokens)`. */
export const describeThreads = ({ works }: ThreadChoice): string =>
  works
    .map(({ threads, tokens }) =>
      tokens === undefined ? `${threads}` : `${threads} (${tokens} token${tokens === 1 ? "" : "s"})`,
    )
    .join(", ")

/** For example `1 token: 9.9 ms with 1, 9.6 ms with 2`. Empty if nothing was measured. */
export const describeTrial = ({ works }: ThreadChoice): string =>
  works
    .filter(({ ms }) => Object.keys(ms).length > 0)
    .map(({ ms, tokens }) => {
      const times = Object.entries(ms).map(([threads, time]) => `${shown(time)} ms with ${threads}`)
      const what = tokens === undefined ? "" : `${tokens} token${tokens === 1 ? "" : "s"}: `
      return `${what}${times.join(", ")}`
    })
    .join("; ")

const shown = (ms: number): string => (ms < 10 ? ms.toFixed(2) : ms.toFixed(0))
