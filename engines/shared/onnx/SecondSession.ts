// The second session of an ONNX graph, with half of the threads, for the time when other models or programs need the
// cores. Only a session that has a second one may spin.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { InferenceSession } from "onnxruntime-node"
import { narrowThreads } from "#domain/threads/ThreadChoice.ts"
import { whileOpening } from "../../protocol/Opening.ts"
import { CoreContention } from "./CoreContention.ts"
import { type OnnxOptions, spins } from "./OnnxOptions.ts"
import type { Feeds } from "./Tensors.ts"
import { isAllowed } from "./ThreadLimit.ts"

export type Create = (options: OnnxOptions) => Promise<InferenceSession>

/** One native call; `fetches` limits the outputs. */
export type NativeRun = (
  feeds: Feeds,
  fetches: ReadonlyArray<string> | undefined,
) => Promise<InferenceSession.OnnxValueMapType>

export const release = (session: InferenceSession): Promise<void> => session.release().catch(() => undefined)

/** The session to use while others need the cores; undefined if there is none, or not yet. */
type Narrow = () => InferenceSession | undefined

/** There is one engine in a process or worker thread, so its sessions share this measurement. */
const contention = new CoreContention()

/**
 * A session's threads spin at the end of each operator: two of them beside another model's lost a sixth of the machine
 * (measured). So a second session with half of the threads, without spinning, is opened when other models or programs
 * first need the cores; meanwhile the first one continues. It keeps its memory until the model is unloaded.
 */
const narrower = (create: Create, options: OnnxOptions): Effect.Effect<Narrow, never, Scope.Scope> => {
  const { threads } = options
  let opening: Promise<InferenceSession | undefined> | undefined
  let narrow: InferenceSession | undefined
  const begin = async (): Promise<InferenceSession | undefined> => {
    try {
      narrow = await whileOpening(() =>
        create({ ...options, threads: narrowThreads(threads), narrows: false }),
      )
    } catch {
      // E.g. out of memory: the first session continues alone.
    }
    return narrow
  }
  return Effect.acquireRelease(
    Effect.sync(
      (): Narrow => () => {
        if (isAllowed(threads) && !contention.taken(performance.now())) return undefined
        opening ??= begin()
        return narrow
      },
    ),
    () =>
      Effect.promise(async () => {
        const opened = await opening
        if (opened !== undefined) await release(opened)
      }),
  )
}

/** Runs a call on spinning threads and records its contention for cores. */
const spun = async (threads: number, call: () => Promise<InferenceSession.OnnxValueMapType>) => {
  const beganMs = performance.now()
  const before = process.cpuUsage()
  const outputs = await call()
  const { system, user } = process.cpuUsage(before)
  const nowMs = performance.now()
  contention.ran({ ms: nowMs - beganMs, cpuMs: (system + user) / 1000, threads }, nowMs)
  return outputs
}

const runOf =
  (session: InferenceSession): NativeRun =>
  (feeds, fetches) =>
    fetches === undefined ? session.run(feeds) : session.run(feeds, fetches)

/** Runs calls on the session, or on its second one. */
export const withSecond = (
  session: InferenceSession,
  create: Create,
  options: OnnxOptions,
): Effect.Effect<NativeRun, never, Scope.Scope> =>
  spins(options)
    ? Effect.map(narrower(create, options), (narrow): NativeRun => {
        const wide = runOf(session)
        return (feeds, fetches) => {
          const second = narrow()
          return second === undefined
            ? spun(options.threads, () => wide(feeds, fetches))
            : runOf(second)(feeds, fetches)
        }
      })
    : Effect.succeed(runOf(session))
