// The command's side of the load client: sends tasks to its thread and receives results. The thread ends with the
// scope.
import { Worker } from "node:worker_threads"
import { Data, Effect, type Scope } from "effect"
import type { Target } from "#harness/client/Exchange.ts"
import type { Answered, Asked, ResultOf, Task } from "./Tasks.ts"

/** A measurement that could not be made, with the reason as a sentence. */
export class NotMeasured extends Data.TaggedError("NotMeasured")<{ readonly problem: string }> {
  override get message(): string {
    return this.problem
  }
}

export interface LoadClient {
  readonly run: <T extends Task>(task: T) => Effect.Effect<ResultOf<T>, NotMeasured>
}

/** The thread applies the deadlines itself; this is in addition, for a thread that does not respond. */
const graceMs = 2_000

export const loadClient = (target: Target): Effect.Effect<LoadClient, never, Scope.Scope> =>
  Effect.map(
    Effect.acquireRelease(
      Effect.sync(() => new Worker(new URL("./loadClientMain.ts", import.meta.url), { workerData: target })),
      (worker) => Effect.promise(() => worker.terminate()),
    ),
    (worker) => {
      let last = 0
      const waiting = new Map<number, (answered: Answered) => void>()
      worker.on("message", (answered: Answered) => {
        waiting.get(answered.id)?.(answered)
        waiting.delete(answered.id)
      })
      worker.on("error", (cause) => {
        for (const [id, tell] of waiting) tell({ id, problem: `the load client failed: ${String(cause)}` })
        waiting.clear()
      })
      const run = <T extends Task>(task: T): Effect.Effect<ResultOf<T>, NotMeasured> =>
        Effect.callback<ResultOf<T>, NotMeasured>((resume) => {
          const id = ++last
          waiting.set(id, (answered) =>
            resume(
              "problem" in answered
                ? Effect.fail(new NotMeasured({ problem: answered.problem }))
                : Effect.succeed(answered.result as ResultOf<T>),
            ),
          )
          // Timers have a resolution of whole milliseconds.
          const deadlineMs = Math.max(1, Math.ceil(task.deadlineMs))
          worker.postMessage({ id, task: { ...task, deadlineMs } } satisfies Asked)
          return Effect.sync(() => void waiting.delete(id))
        }).pipe(
          Effect.timeoutOrElse({
            duration: task.deadlineMs + graceMs,
            orElse: () => Effect.fail(new NotMeasured({ problem: "no answer within its time" })),
          }),
        )
      return { run }
    },
  )
