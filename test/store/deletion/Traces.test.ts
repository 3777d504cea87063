// The bytes of a SQLite store after deletions: free pages, gaps in pages and the write-ahead log hold nothing of what was deleted,
// whatever was written and removed before.
import { copyFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import fc from "fast-check"
import { Accounts } from "#store/accounts/Accounts.ts"
import { Deletions } from "#store/deletion/Deletions.ts"
import { IdempotencyStore } from "#store/idempotency/IdempotencyStore.ts"
import { Jobs } from "#store/ledger/Jobs.ts"
import { storeLayer } from "#store/Store.ts"
import { rewriteFile } from "#store/sql/Compaction.ts"
import { ownJobs } from "../../support/nodes/JobRow.ts"
import { filesWith } from "../../support/process/FilesWith.ts"
import { tempDir } from "../TempDir.ts"

const mark = "VIOLET-secret"

/** Lengths of texts: in one cell of a page, over several pages, over hundreds. */
const length = fc.oneof(
  fc.integer({ min: 1, max: 300 }),
  fc.integer({ min: 1000, max: 9000 }),
  fc.constant(400_000),
)
const action = fc.record({
  org: fc.constantFrom("violet-inc", "kept-one", "kept-two"),
  what: fc.constantFrom("answer", "job", "user"),
  length,
})

it.live("leaves no byte of a deleted organization in any file of the directory", () =>
  Effect.gen(function* () {
    const histories = fc.sample(fc.array(action, { minLength: 30, maxLength: 60 }), { numRuns: 3, seed: 5 })
    for (const history of histories) {
      const dataDir = yield* tempDir
      yield* Effect.gen(function* () {
        const accounts = yield* Accounts
        const answers = yield* IdempotencyStore
        const jobs = yield* Jobs
        for (const [nth, { length, org, what }] of history.entries()) {
          const own = org === "violet-inc"
          const user = own ? `${mark}-user-${nth}` : `user-${nth}`
          const { apiKey, keyId } = yield* accounts.createKey({ org, user })
          const { orgId, userId } = yield* accounts.authenticate(apiKey)
          const text = (own ? mark : "amber").repeat(Math.ceil(length / 13)).slice(0, Math.max(length, 13))
          if (what === "answer") {
            const answer = {
              digest: "",
              status: 200,
              headers: {},
              receiptId: undefined,
              body: Buffer.from(text),
            }
            yield* answers.keep({ id: `${nth}`, orgId, userId }, answer)
          }
          if (what === "job") {
            const options = {
              language: null,
              prompt: text.slice(0, 1000),
              temperature: 0,
              punctuation: null,
              format: "json" as const,
              granularities: [],
            }
            const id = yield* jobs.accept({ orgId, keyId, model: "stt", options, uploadPath: "/nowhere" })
            yield* jobs.take(ownJobs)
            yield* jobs.change({ id: id ?? "", attempt: 1 }, "complete", { transcript: { text } as never })
          }
          // Pages split and merge.
          if (nth % 5 === 4) yield* answers.removeOf(orgId, userId)
        }
        expect(filesWith(dataDir, [mark])).not.toEqual([])
        yield* (yield* Deletions).org("violet-inc", { alone: true })
        expect(filesWith(dataDir, [mark, "violet-inc"])).toEqual([])
        expect(filesWith(dataDir, ["kept-one"])).not.toEqual([])
      }).pipe(Effect.provide(Layer.fresh(storeLayer({ dataDir }))))
      expect(filesWith(dataDir, [mark, "violet-inc"])).toEqual([])
    }
  }).pipe(Effect.scoped),
)

it.live("rewrites a file whose free pages were not overwritten, as earlier versions left them", () =>
  Effect.gen(function* () {
    const dir = yield* tempDir
    const file = join(dir, "store.sqlite")
    const db = new DatabaseSync(file)
    db.exec("PRAGMA journal_mode=WAL; CREATE TABLE t (id INTEGER PRIMARY KEY, text TEXT)")
    for (let id = 0; id < 200; id++)
      db.prepare("INSERT INTO t VALUES (?, ?)").run(id, `${mark} ${id}`.repeat(20))
    db.exec("PRAGMA wal_checkpoint(TRUNCATE); DELETE FROM t WHERE id % 3 > 0")
    db.close()
    // The reference: without the rewriting they are there.
    copyFileSync(file, join(dir, "before"))
    expect(filesWith(dir, [`${mark} 1`])).toHaveLength(2)
    rewriteFile(file)
    expect(filesWith(dir, [`${mark} 1${mark} 1${mark}`])).toEqual([
      `${join(dir, "before")}: ${mark} 1${mark} 1${mark}`,
    ])
    expect(filesWith(dir, [`${mark} 3${mark}`])).toHaveLength(2)
  }).pipe(Effect.scoped),
)
