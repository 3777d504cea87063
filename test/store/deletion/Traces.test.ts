// The bytes of a SQLite store after deletions: free pages, gaps in pages and the write-ahead log hold nothing of what was deleted,
// whatever was written and removed before. Only what an earlier version has left makes a deletion write the whole file anew.
import { existsSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { setImmediate } from "node:timers/promises"
import { expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer } from "effect"
import { SqlClient } from "effect/sql"
import fc from "fast-check"
import { Accounts } from "#store/accounts/Accounts.ts"
import { ClientSecrets } from "#store/accounts/ClientSecrets.ts"
import { Deletions } from "#store/deletion/Deletions.ts"
import { IdempotencyStore } from "#store/idempotency/IdempotencyStore.ts"
import { Jobs } from "#store/ledger/Jobs.ts"
import { type Store, storeLayer } from "#store/Store.ts"
import { openDataDirectory } from "../../support/fixtures/DataDirectory.ts"
import { ownJobs } from "../../support/nodes/JobRow.ts"
import { filesWith } from "../../support/process/FilesWith.ts"
import { tempDir } from "../TempDir.ts"

const inStore = <A, E>(dataDir: string, effect: Effect.Effect<A, E, Store>) =>
  Effect.provide(effect, Layer.fresh(storeLayer({ dataDir })))

/** In texts and in names of what is deleted. */
const textMark = "VIOLET-secret"
const nameMark = "violet"

interface Row {
  readonly org: string
  readonly what: "answer" | "job" | "secret"
  readonly length: number
}

const isOwn = (org: string): boolean => org === "violet-inc"

const textOf = ({ length, org }: Omit<Row, "what">): string =>
  (isOwn(org) ? textMark : "amber").repeat(Math.ceil(length / 5)).slice(0, Math.max(length, 13))

/** Adds a row with a text, under a user of its own. Returns the id of the job, if it is one; it is in work. */
const add = Effect.fnUntraced(function* (nth: number, row: Row) {
  const { org, what } = row
  const accounts = yield* Accounts
  const { apiKey, keyId } = yield* accounts.createKey({
    org,
    user: isOwn(org) ? `${nameMark}-${nth}` : `user-${nth}`,
  })
  const principal = yield* accounts.authenticate(apiKey)
  const { orgId, userId } = principal
  if (what === "answer") {
    const answer = {
      digest: "",
      status: 200,
      headers: {},
      receiptId: undefined,
      body: Buffer.from(textOf(row)),
    }
    yield* (yield* IdempotencyStore).keep({ id: `${nth}`, orgId, userId }, answer)
  }
  if (what === "secret") {
    const terms = JSON.stringify({ instructions: textOf(row) })
    yield* (yield* ClientSecrets).create({ principal, expiresAtMs: Date.now() + 60_000, terms })
  }
  if (what !== "job") return undefined
  const jobs = yield* Jobs
  const options = {
    language: null,
    prompt: textOf({ org, length: row.length % 300 }),
    temperature: 0,
    punctuation: null,
    format: "json" as const,
    granularities: [],
  }
  const id = yield* jobs.accept({ orgId, keyId, model: "stt", options, uploadPath: "/nowhere" })
  yield* jobs.take(ownJobs)
  return id
})

const complete = (id: string, row: Omit<Row, "what">) =>
  Effect.flatMap(Jobs, (jobs) =>
    jobs.change({ id, attempt: 1 }, "complete", { transcript: { text: textOf(row) } as never }),
  )

/** Rows of two organizations. Jobs are completed in another order than they were accepted in, so that pages split in the middle. */
const history = fc.record({
  rows: fc.array(
    fc.record<Row>({
      org: fc.constantFrom("violet-inc", "kept-inc"),
      what: fc.constantFrom("answer", "job", "job", "job", "job", "job", "secret"),
      // In one cell of a page, over several pages.
      length: fc.oneof(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 1000, max: 9000 })),
    }),
    { minLength: 150, maxLength: 150 },
  ),
  order: fc.array(fc.nat(), { minLength: 150, maxLength: 150 }),
})

it.live.each([4, 5])(
  "leaves no byte of deleted texts and names in any file of the directory, history %i",
  (seed) =>
    Effect.gen(function* () {
      const dataDir = yield* tempDir
      const { order, rows } = fc.sample(history, { numRuns: 1, seed })[0]!
      yield* inStore(
        dataDir,
        Effect.gen(function* () {
          const deletions = yield* Deletions
          const jobs = yield* Jobs
          const sql = yield* SqlClient.SqlClient
          const accepted: Array<readonly [id: string, row: Row]> = []
          for (const [nth, row] of rows.entries()) {
            const id = yield* add(nth, row)
            if (id !== undefined) accepted.push([id, row])
          }
          const own: Array<string> = []
          for (let nth = 0; accepted.length > 0; nth++) {
            const [id, row] = accepted.splice(order[nth]! % accepted.length, 1)[0]!
            yield* complete(id, row)
            if (isOwn(row.org)) own.push(id)
          }
          // Users of one organization side by side in the index. Where two of three go, pages merge and leave copies of the names.
          const { id: orgId } = yield* (yield* Accounts).showOrg("kept-inc")
          yield* sql.withTransaction(
            Effect.forEach(Array.from({ length: 2000 }).keys(), (nth) => {
              const name = `${10_000 + nth}-${nth % 3 === 0 ? "other" : nameMark}${"n".repeat((nth * 7) % 40)}`
              return sql`INSERT INTO users (id, org_id, name, created_at_ms) VALUES (${`user_${nth}`}, ${orgId}, ${name}, 0)`
            }),
          )
          yield* sql`DELETE FROM users WHERE name LIKE ${`%-${nameMark}%`}`
          expect(filesWith(dataDir, [textMark])).not.toEqual([])

          // By their owner, and the last one by an operator.
          for (const id of own.slice(1)) expect(yield* jobs.remove(id)).toBe(true)
          yield* sql`DELETE FROM client_secrets`
          yield* deletions.answers("violet-inc")
          yield* deletions.job("violet-inc", own[0]!, { alone: true })
          expect(filesWith(dataDir, [textMark])).toEqual([])

          yield* deletions.org("violet-inc", { alone: true })
          expect(filesWith(dataDir, [textMark, nameMark])).toEqual([])
          expect(filesWith(dataDir, ["kept-inc", "amber"])).toHaveLength(2)
        }),
      )
      expect(filesWith(dataDir, [textMark, nameMark])).toEqual([])
    }).pipe(Effect.scoped),
)

it.live("removes the upload of a job that has ended, if the node has not done so yet", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const path = join(dataDir, "upload")
    yield* inStore(
      dataDir,
      Effect.gen(function* () {
        const row = { org: "violet-inc", what: "job", length: 10 } as const
        const id = (yield* add(0, row)) ?? ""
        yield* complete(id, row)
        const sql = yield* SqlClient.SqlClient
        yield* sql`UPDATE transcription_jobs SET upload_path = ${path}`
        writeFileSync(path, "audio")
        expect(yield* (yield* Deletions).job("violet-inc", id)).toMatchObject({ jobs: 1, waitingUploads: 0 })
        expect(existsSync(path)).toBe(false)
      }),
    )
  }).pipe(Effect.scoped),
)

const freePages = (dataDir: string): number => {
  const db = new DatabaseSync(join(dataDir, "store.sqlite"))
  const row = db.prepare("PRAGMA freelist_count").get() as { readonly freelist_count: number }
  db.close()
  return row.freelist_count
}

it.live("writes the whole file anew once, if an earlier version has made it", () =>
  Effect.gen(function* () {
    const dataDir = join(yield* tempDir, "data")
    openDataDirectory("0.1.0", dataDir)
    const db = new DatabaseSync(join(dataDir, "store.sqlite"))
    const insert = db.prepare(
      "INSERT INTO client_secrets (digest, key_id, org_id, terms, expires_at_ms) VALUES (?, '', '', ?, 0)",
    )
    for (let nth = 0; nth < 200; nth++)
      insert.run(`${nth}`, `{"instructions":"${`${textMark} ${nth} `.repeat(20)}"}`)
    db.exec("DELETE FROM client_secrets WHERE CAST(digest AS INTEGER) % 3 > 0 AND org_id = ''")
    db.close()
    const deleted = `${textMark} 1 ${textMark} 1 `
    const kept = `${textMark} 3 ${textMark} 3 `
    yield* inStore(
      dataDir,
      Effect.gen(function* () {
        const deletions = yield* Deletions
        expect(filesWith(dataDir, [deleted])).not.toEqual([])
        yield* deletions.answers("acme")
        expect(filesWith(dataDir, [deleted, kept])).toEqual([`${join(dataDir, "store.sqlite")}: ${kept}`])
        expect(freePages(dataDir)).toBe(0)
        // From now on pages are freed and stay.
        yield* add(0, { org: "violet-inc", what: "answer", length: 400_000 })
        yield* deletions.org("violet-inc", { alone: true })
        expect(freePages(dataDir)).toBeGreaterThan(90)
        expect(filesWith(dataDir, [textMark.repeat(2), "violet-inc"])).toEqual([])
      }),
    )
  }).pipe(Effect.scoped),
)

it.live("writes little while a large store is cleaned, so that other writers wait briefly", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const file = join(dataDir, "store.sqlite")
    yield* inStore(
      dataDir,
      Effect.gen(function* () {
        for (let nth = 0; nth < 12; nth++)
          yield* add(nth, { org: "kept-inc", what: "answer", length: 5_000_000 })
        yield* add(12, { org: "violet-inc", what: "answer", length: 9000 })
        const other = new DatabaseSync(file)
        // What a transaction writes is in the log until a checkpoint, and other writers wait for it.
        const logBytes = () => statSync(`${file}-wal`).size
        other.exec("PRAGMA busy_timeout=60000; PRAGMA synchronous=OFF; PRAGMA wal_checkpoint(TRUNCATE)")
        // Beside a checkpoint of the store's thread it does nothing, and does not wait.
        while (logBytes() > 0) {
          yield* Effect.sleep(20)
          other.exec("PRAGMA wal_checkpoint(TRUNCATE)")
        }
        let ended = false
        let mostLogged = 0
        const watching = Effect.promise(async () => {
          while (!ended) {
            mostLogged = Math.max(mostLogged, logBytes())
            await setImmediate()
          }
        })
        const watcher = yield* Effect.forkChild(watching)
        yield* (yield* Deletions).org("violet-inc", { alone: true })
        ended = true
        yield* Fiber.join(watcher)
        other.close()
        // If the whole file were written, its 60 MB would stand in the log.
        expect(mostLogged).toBeGreaterThan(0)
        expect(mostLogged).toBeLessThan(statSync(file).size / 4)
      }),
    )
  }).pipe(Effect.scoped),
)
