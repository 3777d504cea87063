// The second session of an ONNX graph, with half of the threads: for while other models or programs need the cores. Opened
// and chosen from by OnnxSession; only a session that has a second one to give way to may spin.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { InferenceSession } from "onnxruntime-node"
import { narrowThreads } from "#domain/threads/ThreadChoice.ts"
import { whileOpening } from "../../protocol/Opening.ts"
import { CoreContention } from "./CoreContention.ts"
import type { Feeds, OnnxOptions } from "./OnnxSession.ts"
import { isAllowed } from "./ThreadLimit.ts"

export type Create = (options: OnnxOptions) => Promise<InferenceSession>

/** One native call; `fetches` limits the outputs. */
export type NativeRun = (
  feeds: Feeds,
  fetches: ReadonlyArray<string> | undefined,
) => Promise<InferenceSession.OnnxValueMapType>

export const release = (session: InferenceSession): Promise<void> => session.release().catch(() => undefined)

/**
 * Whether threads wait for the next operator of a call actively. ONNX Runtime's spin by default, also between two calls:
 * two of them on two busy cores were 18 times slower than one. Spinning within a call alone makes a window of Whisper base
 * 11 % faster on an idle machine, and 1.2 times slower beside another program that computes (measured). So only a session
 * that has a narrower one to give way to spins, and only within its calls.
 */
export const spins = ({ ep, narrows = false, threads }: OnnxOptions): boolean =>
  narrows && threads > 1 && ep !== "cuda"

/** The session to use instead while others need the cores; undefined where there is none, or none yet. */
type Narrow = () => InferenceSession | undefined

/** One engine a process or worker thread, so its sessions share what they find out. */
const contention = new CoreContention()

/**
 * A session's threads wait for each other actively at the end of each operator: two of them beside another model's lost a
 * sixth of the machine (measured). So a second session with half of the threads, which do not spin, is opened the first
 * time that other models or programs need the cores, while the first one goes on; it keeps its memory until the model is
 * unloaded.
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
      // E.g. no memory for it: the first session goes on alone.
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

/** The call, and what it says about the cores where its threads spin. */
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

/** Calls of a session, or of its second one. */
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
