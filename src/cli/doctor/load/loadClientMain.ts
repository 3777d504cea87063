// Entry of the load client's thread: runs the tasks of LoadClient.ts. A thread of its own, so that sending and
// receiving do not block the event loop of the measured node.
import { parentPort, workerData } from "node:worker_threads"
import type { Target } from "#harness/client/Exchange.ts"
import { isUnfinished, RequestFailed } from "#harness/client/Failures.ts"
import { runAdmission, runLive, runTranscribe } from "./Listening.ts"
import { runPlay, runSpeak } from "./Speech.ts"
import type { Answered, Asked, ResultOf, Task } from "./Tasks.ts"
import { runPrompts, runReplies, runReply } from "./Text.ts"

const target = workerData as Target

const tasks = {
  prompts: runPrompts,
  replies: runReplies,
  reply: runReply,
  speak: runSpeak,
  play: runPlay,
  transcribe: runTranscribe,
  live: runLive,
  admission: runAdmission,
}

const run = (task: Task): Promise<ResultOf<Task>> => tasks[task.kind](target, task as never)

const problemOf = (error: unknown, { deadlineMs }: Task): string => {
  if (isUnfinished(error)) return `not finished within ${(deadlineMs / 1000).toFixed(1)} s`
  if (!(error instanceof RequestFailed)) return error instanceof Error ? error.message : String(error)
  return /^\d+$/.test(error.key) ? `the node answered ${error.key}: ${error.message}` : error.message
}

parentPort?.on("message", ({ id, task }: Asked) => {
  run(task).then(
    (result) => parentPort?.postMessage({ id, result } satisfies Answered),
    (error: unknown) => {
      parentPort?.postMessage({ id, problem: problemOf(error, task) } satisfies Answered)
    },
  )
})
