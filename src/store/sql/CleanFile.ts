// Removes what deleted rows leave behind in the files of a SQLite store: free pages, gaps inside of pages, older pages in the
// write-ahead log. SQLite overwrites deleted content (`secure_delete`), and texts lie where no copy of them is left (Padding). Two
// things remain: names, of which a page that was split or merged may keep a copy in its unused part, so their tables are written anew;
// and what earlier versions have left, so the whole file is written anew once.
// Without the program's other modules: its thread (checkpointThread.ts) would read them at every start of a node.
import { DatabaseSync } from "node:sqlite"

/** How long to wait for other processes' locks. A guess: a command holds one for milliseconds. */
export const busyTimeoutMs = 10_000

/** Tables with names, or the beginnings of keys. */
const namedTables = ["api_keys", "users", "orgs"]

/** What was deleted: names, with whatever belongs to them, or rows with texts only. */
export type DeletedKind = "names" | "texts"

/** How long a checkpoint may wait for readers, which it does with the lock of writers. A guess. */
const readersMs = 5

/**
 * Copies the log into the database file and empties it. False if it is in use: another process makes a checkpoint, or reads an older
 * state. Writers wait only for what they have added since its first step.
 */
export const emptyLog = (db: DatabaseSync): boolean => {
  db.exec(`PRAGMA wal_checkpoint(PASSIVE); PRAGMA busy_timeout=${readersMs}`)
  const row = db.prepare("PRAGMA wal_checkpoint(TRUNCATE)").get() as { readonly busy: number }
  db.exec(`PRAGMA busy_timeout=${busyTimeoutMs}`)
  return row.busy === 0
}

/** How long `clean` tries to empty the log: a backup of a large store reads one state for minutes. A guess. */
const emptyLogMs = 120_000
const emptyLogEveryMs = 50

const emptyLogInTime = (db: DatabaseSync): void => {
  const pause = new Int32Array(new SharedArrayBuffer(4))
  for (const beganMs = performance.now(); !emptyLog(db); Atomics.wait(pause, 0, 0, emptyLogEveryMs)) {
    if (performance.now() - beganMs > emptyLogMs) {
      throw new Error("its write-ahead log is in use and could not be emptied; is a backup being made?")
    }
  }
}

/** Whether an earlier version has written the file, and it was not written anew since (migration 9). */
const needsRewrite = (db: DatabaseSync): boolean => {
  const hasMeta = db.prepare("SELECT 1 FROM sqlite_schema WHERE name = 'meta'").get() !== undefined
  return hasMeta && db.prepare("SELECT 1 FROM meta WHERE name = 'whole_rewrite'").get() !== undefined
}

/**
 * Writes the tables with names anew, in one transaction: `DELETE` without a condition overwrites every page of a table and its
 * indexes. Other writers wait for it: some milliseconds for a thousand users.
 */
const rewriteNames = (db: DatabaseSync): void => {
  db.exec("BEGIN IMMEDIATE")
  try {
    for (const table of namedTables) {
      db.exec(`
        CREATE TEMP TABLE kept AS SELECT * FROM main.${table};
        DELETE FROM main.${table};
        INSERT INTO main.${table} SELECT * FROM kept;
        DROP TABLE kept`)
    }
    db.exec("COMMIT")
  } catch (cause) {
    db.exec("ROLLBACK")
    throw cause
  }
}

/**
 * Completes when nothing of deleted rows is left in the database file and its log. Blocks: call it in a command or on a thread. Other
 * processes read meanwhile. Writers wait for the tables with names; in the first call on a file of an earlier version for the whole file,
 * which needs free disk space of twice its size.
 */
export const cleanFile = (filename: string, deleted: DeletedKind): void => {
  const db = new DatabaseSync(filename, { enableForeignKeyConstraints: false })
  try {
    db.exec(`PRAGMA busy_timeout=${busyTimeoutMs}; PRAGMA secure_delete=ON`)
    if (needsRewrite(db)) {
      db.exec("PRAGMA temp_store=FILE; VACUUM; DELETE FROM meta WHERE name = 'whole_rewrite'")
    } else if (deleted === "names") {
      db.exec("PRAGMA temp_store=MEMORY")
      rewriteNames(db)
    }
    emptyLogInTime(db)
  } finally {
    db.close()
  }
}
