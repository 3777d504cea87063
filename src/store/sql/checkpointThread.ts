// The thread that moves SQLite's write-ahead log into the database file, over a connection of its own, and that rewrites the file
// after deletions. Both wait for the disk, which the event loop must not do.
import { DatabaseSync } from "node:sqlite"
import { parentPort, workerData } from "node:worker_threads"
import { emptyLog, rewriteFile } from "./Compaction.ts"

/** Often enough that the log stays at a few MB under full load. A checkpoint without new pages costs microseconds. */
const everyMs = 1000
/** Another process may be making a checkpoint, which serves as well. */
const busyTimeoutMs = 1000

export type ToCheckpointThread =
  | { readonly type: "stop" }
  | { readonly type: "empty log" }
  | { readonly type: "rewrite"; readonly id: number }

/** `problem` is undefined if the file was rewritten. */
export interface Rewritten {
  readonly id: number
  readonly problem: string | undefined
}

const { filename } = workerData as { readonly filename: string }
const db = new DatabaseSync(filename)
db.exec(`PRAGMA busy_timeout=${busyTimeoutMs}; PRAGMA secure_delete=ON`)
let emptiesLog = false

const timer = setInterval(() => {
  if (!emptiesLog) {
    // PASSIVE never blocks a reader or a writer.
    db.exec("PRAGMA wal_checkpoint(PASSIVE)")
    return
  }
  // If the log is in use, it is tried again at the next interval.
  emptiesLog = !emptyLog(db)
}, everyMs)

const rewritten = (id: number): Rewritten => {
  try {
    rewriteFile(filename)
    return { id, problem: undefined }
  } catch (cause) {
    return { id, problem: cause instanceof Error ? cause.message : String(cause) }
  }
}

parentPort?.on("message", (message: ToCheckpointThread) => {
  switch (message.type) {
    case "empty log":
      emptiesLog = true
      return
    case "rewrite":
      parentPort?.postMessage(rewritten(message.id))
      return
    case "stop":
      clearInterval(timer)
      db.close()
      parentPort?.close()
  }
})
