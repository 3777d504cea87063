// The thread that moves SQLite's write-ahead log into the database file, over a connection of its own. A checkpoint
// waits for the disk, which the event loop must not do.
import { DatabaseSync } from "node:sqlite"
import { parentPort, workerData } from "node:worker_threads"

/** Often enough that the log stays at a few MB under full load. A checkpoint without new pages costs microseconds. */
const everyMs = 1000
/** Another process may be making a checkpoint, which serves as well. */
const busyTimeoutMs = 1000

const db = new DatabaseSync((workerData as { readonly filename: string }).filename)
db.exec(`PRAGMA busy_timeout=${busyTimeoutMs}`)
// PASSIVE never blocks a reader or a writer.
const timer = setInterval(() => db.exec("PRAGMA wal_checkpoint(PASSIVE)"), everyMs)

parentPort?.once("message", () => {
  clearInterval(timer)
  db.close()
})
