// The thread that moves SQLite's write-ahead log into the database file, over a connection of its own, and that cleans the files
// after deletions. Both wait for the disk, which the event loop must not do.
import { DatabaseSync } from "node:sqlite"
import { parentPort, workerData } from "node:worker_threads"
import { busyTimeoutMs, cleanFile, type DeletedKind, emptyLog } from "./CleanFile.ts"

/** Often enough that the log stays at a few MB under full load. A checkpoint without new pages costs microseconds. */
const everyMs = 1000

export type ToCheckpointThread =
  | { readonly type: "stop" }
  | { readonly type: "empty log" }
  | { readonly type: "clean"; readonly id: number; readonly deleted: DeletedKind }

/** `problem` is undefined if nothing of deleted rows is left. */
export interface Cleaned {
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

const cleaned = (id: number, deleted: DeletedKind): Cleaned => {
  try {
    cleanFile(filename, deleted)
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
    case "clean":
      parentPort?.postMessage(cleaned(message.id, message.deleted))
      return
    case "stop":
      clearInterval(timer)
      db.close()
      parentPort?.close()
  }
})
