// The thread that moves the write-ahead log into the database file. Started by Checkpointer; it has a connection of
// its own and knows the file's name and nothing else. A checkpoint waits for the disk, and the gateway must not.
import { DatabaseSync } from "node:sqlite"
import { parentPort, workerData } from "node:worker_threads"

/** Often enough that the log stays at a few MB under full load; a look at a log without news costs microseconds. */
const everyMs = 1000
/** Another process may be checkpointing; its work is as good as ours. */
const busyTimeoutMs = 1000

const db = new DatabaseSync((workerData as { readonly filename: string }).filename)
db.exec(`PRAGMA busy_timeout=${busyTimeoutMs}`)
// PASSIVE never holds up a reader or a writer.
const timer = setInterval(() => db.exec("PRAGMA wal_checkpoint(PASSIVE)"), everyMs)

parentPort?.once("message", () => {
  clearInterval(timer)
  db.close()
})
