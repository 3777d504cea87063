// A backup of a data directory and its restore: everything that is promised is equal, and whatever is wrong with the file, the place or
// the disk ends with one line and changes nothing.
import { chmodSync, existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { SqlClient } from "effect/sql"
import fc from "fast-check"
import { create, extract } from "tar"
import { textUsage } from "#domain/models/Usage.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { makeBackup } from "#store/backup/Backup.ts"
import { restoreBackup } from "#store/backup/Restore.ts"
import { tryFileLock } from "#store/files/FileLock.ts"
import { Jobs } from "#store/ledger/Jobs.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { newestSchema } from "#store/migrations/index.ts"
import { type Store, storeLayer } from "#store/Store.ts"
import { ownJobs } from "../../support/nodes/JobRow.ts"
import { tempDir } from "../TempDir.ts"

const version = "0.1.0"

const inStore = <A, E>(dataDir: string, effect: Effect.Effect<A, E, Store>) =>
  Effect.provide(effect, Layer.fresh(storeLayer({ dataDir })))

const rowsOf = (dataDir: string) => {
  const db = new DatabaseSync(join(dataDir, "store.sqlite"))
  const tables = [
    "meta",
    "orgs",
    "users",
    "api_keys",
    "usage_ledger",
    "usage_sums",
    "answers",
    "client_secrets",
  ]
  db.exec("DELETE FROM meta WHERE name = 'place'")
  const rows = tables.map((table) => db.prepare(`SELECT * FROM ${table} ORDER BY 1`).all())
  const jobs = db.prepare("SELECT * FROM transcription_jobs WHERE status = 'completed'").all()
  db.close()
  return JSON.stringify([rows, jobs])
}

/** A directory with a store, keys and files of each kind. */
const furnished = Effect.gen(function* () {
  const dataDir = yield* tempDir
  const made = yield* inStore(
    dataDir,
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const jobs = yield* Jobs
      const ledger = yield* UsageLedger
      const { apiKey, keyId } = yield* accounts.createKey({ org: "acme" })
      const principal = yield* accounts.authenticate(apiKey)
      yield* Effect.scoped(
        Effect.flatMap(ledger.reserve(principal, 10), (reservation) =>
          ledger.settle(reservation, { model: "llm", usage: textUsage(3, 4), microDollars: 5 }),
        ),
      )
      const options = {
        language: null,
        prompt: "",
        temperature: 0,
        punctuation: null,
        format: "json" as const,
        granularities: [],
      }
      const job = { orgId: principal.orgId, keyId, model: "stt", options, uploadPath: "/nowhere" }
      const finished = (yield* jobs.accept(job)) ?? ""
      yield* jobs.take(ownJobs)
      yield* jobs.change({ id: finished, attempt: 1 }, "complete", {
        transcript: { text: "what was said" } as never,
      })
      const waiting = (yield* jobs.accept(job)) ?? ""
      return { apiKey, orgId: principal.orgId, finished, waiting }
    }),
  )
  writeFileSync(join(dataDir, "signing-keys.json"), '{"keys":[]}', { mode: 0o600 })
  writeFileSync(join(dataDir, "dev-key"), "svc_x", { mode: 0o600 })
  mkdirSync(join(dataDir, "tls"))
  writeFileSync(join(dataDir, "tls", "self-signed-key.pem"), "key", { mode: 0o600 })
  mkdirSync(join(dataDir, "weights"))
  writeFileSync(join(dataDir, "weights", "large.gguf"), "weights")
  return { dataDir, ...made }
})

const backUp = (dataDir: string, file: string, catalog?: string) =>
  Effect.scoped(makeBackup({ dataDir, file, version, ...(catalog === undefined ? {} : { catalog }) }))

const problem = <A, E extends { readonly message: string }>(effect: Effect.Effect<A, E>) =>
  Effect.map(Effect.flip(effect), ({ message }) => message)

const namesIn = (dir: string) => readdirSync(dir, { recursive: true, encoding: "utf8" }).toSorted()

const leftIn = (dir: string) => (existsSync(dir) ? namesIn(dir) : "nothing")

it.live("brings back keys, balances, receipts, finished jobs and files, as another node", () =>
  Effect.gen(function* () {
    const { apiKey, dataDir, finished, orgId, waiting } = yield* furnished
    const dir = yield* tempDir
    const catalog = join(dir, "my-catalog.json")
    writeFileSync(catalog, "{}")
    const file = join(dir, "backup.tar")
    const { manifest } = yield* backUp(dataDir, file, catalog)
    expect(manifest).toMatchObject({ format: 1, edgewise: version, schema: newestSchema })
    expect(manifest.parts.map(({ name }) => name)).toEqual([
      "store.sqlite",
      "signing-keys.json",
      "dev-key",
      "tls/self-signed-key.pem",
      "catalog.json",
    ])
    expect(statSync(file).mode & 0o777).toBe(0o600)
    expect(namesIn(dir)).toEqual(["backup.tar", "my-catalog.json"])

    const target = join(dir, "restored")
    const restored = yield* restoreBackup({ dataDir: target, file })
    expect(restored).toMatchObject({ dataDir: target, failedJobs: 1 })
    const idOf = (of: string) => readFileSync(join(of, "node-id"), "utf8").trim()
    expect([manifest.node, restored.node]).toEqual([idOf(dataDir), idOf(target)])
    expect(manifest.node).not.toBe(restored.node)
    expect(rowsOf(target)).toBe(rowsOf(dataDir))
    for (const name of [
      "signing-keys.json",
      "dev-key",
      "tls/self-signed-key.pem",
      "store.sqlite",
      "node-id",
    ]) {
      expect([name, statSync(join(target, name)).mode & 0o777]).toEqual([name, 0o600])
    }
    expect(existsSync(join(target, "weights"))).toBe(false)
    yield* inStore(
      target,
      Effect.gen(function* () {
        expect(yield* (yield* Accounts).authenticate(apiKey)).toMatchObject({ orgName: "acme" })
        expect(yield* (yield* UsageLedger).receipts(orgId, 0, 10)).toHaveLength(1)
        const jobs = yield* Jobs
        expect(yield* jobs.find(finished)).toMatchObject({ transcript: { text: "what was said" } })
        expect(yield* jobs.find(waiting)).toMatchObject({
          status: "failed",
          note: "The node was restored from a backup, which holds no uploads",
        })
      }),
    )
  }).pipe(Effect.scoped),
)

it.live("is a state of one moment while another process writes all the time", () =>
  Effect.gen(function* () {
    const { dataDir } = yield* furnished
    const dir = yield* tempDir
    yield* inStore(
      dataDir,
      Effect.gen(function* () {
        const accounts = yield* Accounts
        const sql = yield* SqlClient.SqlClient
        yield* accounts.createOrg({ name: "one", creditsMicroDollars: 1_000_000 })
        yield* accounts.createOrg({ name: "two", creditsMicroDollars: 0 })
        // Money only moves: its sum is the same in every state.
        const move = sql.withTransaction(
          Effect.andThen(
            sql`UPDATE orgs SET credits_micro_dollars = credits_micro_dollars - 1 WHERE name = 'one'`,
            sql`UPDATE orgs SET credits_micro_dollars = credits_micro_dollars + 1 WHERE name = 'two'`,
          ),
        )
        const writer = yield* Effect.forkChild(Effect.forever(Effect.andThen(move, Effect.sleep(0))))
        for (let nth = 0; nth < 3; nth++) {
          const file = join(dir, `${nth}.tar`)
          yield* backUp(dataDir, file)
          const target = join(dir, `restored-${nth}`)
          yield* restoreBackup({ dataDir: target, file })
          const db = new DatabaseSync(join(target, "store.sqlite"))
          const sum = "SELECT SUM(credits_micro_dollars) AS sum FROM orgs WHERE name IN ('one', 'two')"
          expect(db.prepare(sum).get()).toEqual({ sum: 1_000_000 })
          expect(db.prepare("PRAGMA integrity_check").get()).toEqual({ integrity_check: "ok" })
          db.close()
        }
        expect(writer.pollUnsafe()).toBeUndefined()
      }),
    )
  }).pipe(Effect.scoped),
)

describe("that goes wrong changes nothing", () => {
  it.live("whatever byte of the file is changed, and wherever it is cut off", () =>
    Effect.gen(function* () {
      const { dataDir } = yield* furnished
      const dir = yield* tempDir
      const file = join(dir, "backup.tar")
      yield* backUp(dataDir, file)
      const good = readFileSync(file)
      const target = join(dir, "restored")
      const bad = join(dir, "bad.tar")
      const restored = rowsOf(dataDir)
      const cuts = fc.sample(fc.integer({ min: 0, max: good.length - 1100 }), { numRuns: 15, seed: 1 })
      for (const at of cuts) {
        writeFileSync(bad, good.subarray(0, at))
        const message = yield* problem(restoreBackup({ dataDir: target, file: bad }))
        expect([at, message]).toEqual([at, expect.stringMatching(/bad\.tar: is (damaged|no backup)/)])
        expect([at, leftIn(target)]).toEqual([at, "nothing"])
      }
      for (const at of fc.sample(fc.integer({ min: 0, max: good.length - 1100 }), { numRuns: 15, seed: 2 })) {
        const changed = Buffer.from(good)
        changed[at] = (changed[at] ?? 0) ^ 0x55
        writeFileSync(bad, changed)
        const exit = yield* Effect.exit(restoreBackup({ dataDir: target, file: bad }))
        // A byte of padding or of a head's owner means nothing.
        if (Exit.isSuccess(exit)) {
          expect(rowsOf(target)).toBe(restored)
          yield* Effect.promise(async () =>
            (await import("node:fs/promises")).rm(target, { recursive: true }),
          )
        }
        expect([at, leftIn(target)]).toEqual([at, "nothing"])
      }
    }).pipe(Effect.scoped),
  )

  it.live("of a later version, with a foreign part, without a store, no backup at all", () =>
    Effect.gen(function* () {
      const { dataDir } = yield* furnished
      const dir = yield* tempDir
      const file = join(dir, "backup.tar")
      yield* backUp(dataDir, file)
      const unpacked = join(dir, "unpacked")
      mkdirSync(unpacked)
      yield* Effect.promise(() => extract({ file, cwd: unpacked }))
      const manifest = JSON.parse(readFileSync(join(unpacked, "manifest.json"), "utf8"))
      const target = join(dir, "restored")
      const changed = Effect.fnUntraced(function* (change: object, names = ["store.sqlite"]) {
        writeFileSync(join(unpacked, "manifest.json"), JSON.stringify({ ...manifest, ...change }))
        const bad = join(dir, "bad.tar")
        yield* Effect.promise(() => create({ file: bad, cwd: unpacked }, ["manifest.json", ...names]))
        const message = yield* problem(restoreBackup({ dataDir: target, file: bad }))
        expect(existsSync(target)).toBe(false)
        return message.replace(`${bad}: `, "")
      })
      const later = "restore it with that version"
      expect(yield* changed({ schema: 99, edgewise: "9.0.0" })).toBe(
        `was made by a later version of edgewise (9.0.0, schema 99); ${later}`,
      )
      expect(yield* changed({ format: 2 })).toMatch(/was made by a later version/)
      expect(yield* changed({ parts: "none" })).toBe(
        "is no backup of edgewise: its manifest.json cannot be read",
      )
      expect(yield* changed({ parts: [] })).toBe("has no store.sqlite")
      const [store] = manifest.parts
      const foreign = [store, { name: "../evil", size_bytes: 1, sha256: "" }]
      expect(yield* changed({ parts: foreign })).toBe('has a part that is not known: "../evil"')
      expect(yield* changed({}, ["signing-keys.json"])).toBe("is damaged: store.sqlite is missing")
      expect(yield* changed({ parts: [store] }, ["store.sqlite", "dev-key"])).toBe(
        'is damaged: "dev-key" does not belong to it',
      )
      const text = join(dir, "text")
      writeFileSync(text, "not a tar file")
      expect(yield* problem(restoreBackup({ dataDir: target, file: text }))).toMatch(
        /is damaged|is no backup/,
      )
      expect(yield* problem(restoreBackup({ dataDir: target, file: dir }))).toBe(`${dir}: is a folder`)
      expect(yield* problem(restoreBackup({ dataDir: target, file: join(dir, "none") }))).toBe(
        `${join(dir, "none")}: no such file`,
      )
      expect(existsSync(target)).toBe(false)
    }).pipe(Effect.scoped),
  )

  it.live(
    "in a directory that is not empty, that a node uses, or that holds what a killed restore has left",
    () =>
      Effect.gen(function* () {
        const { dataDir } = yield* furnished
        const dir = yield* tempDir
        const file = join(dir, "backup.tar")
        yield* backUp(dataDir, file)
        const before = namesIn(dataDir)
        expect(yield* problem(restoreBackup({ dataDir, file }))).toBe(
          `${dataDir}: is not empty; a backup is restored into an empty data directory (EDGEWISE_DATA_DIR)`,
        )
        const scope = yield* Scope.make()
        yield* Scope.provide(tryFileLock(join(dataDir, "edge.lock")), scope)
        expect(yield* problem(restoreBackup({ dataDir, file }))).toBe(
          `${dataDir}: a node or another restore uses it; name an empty data directory (EDGEWISE_DATA_DIR)`,
        )
        yield* Scope.close(scope, Exit.void)
        expect(namesIn(dataDir)).toEqual([...before, "edge.lock"].toSorted())

        const target = join(dir, "restored")
        mkdirSync(join(target, "restore.partial"), { recursive: true })
        writeFileSync(join(target, "restore.partial", "store.sqlite"), "half")
        const opened = problem(inStore(target, Effect.void))
        expect(yield* opened).toContain(
          "holds an unfinished restore; run `edgewise restore` again, or empty it",
        )
        yield* restoreBackup({ dataDir: target, file })
        expect(rowsOf(target)).toBe(rowsOf(dataDir))
        expect(existsSync(join(target, "restore.partial"))).toBe(false)
      }).pipe(Effect.scoped),
  )

  it.live("where the file exists, cannot be made, is being made, or the store is of a later version", () =>
    Effect.gen(function* () {
      const { dataDir } = yield* furnished
      const dir = yield* tempDir
      const file = join(dir, "backup.tar")
      writeFileSync(file, "mine")
      const exists = `${file}: exists already; name another file, or remove it`
      expect(yield* problem(backUp(dataDir, file))).toBe(exists)
      expect(readFileSync(file, "utf8")).toBe("mine")
      const nowhere = join(dir, "none", "backup.tar")
      expect(yield* problem(backUp(dataDir, nowhere))).toBe(`${join(dir, "none")}: no such file or folder`)
      expect(yield* problem(backUp(join(dir, "none"), join(dir, "b.tar")))).toBe(
        `${join(dir, "none")}: holds no store.sqlite`,
      )
      // What a killed one has left does not matter; one that runs does.
      const other = join(dir, "other.tar")
      mkdirSync(`${other}.partial`)
      writeFileSync(join(`${other}.partial`, "store.sqlite"), "half")
      const scope = yield* Scope.make()
      yield* Scope.provide(tryFileLock(join(`${other}.partial`, "lock")), scope)
      expect(yield* problem(backUp(dataDir, other))).toBe(
        `${other}: another backup to this file is being made`,
      )
      yield* Scope.close(scope, Exit.void)
      yield* backUp(dataDir, other)
      const db = new DatabaseSync(join(dataDir, "store.sqlite"))
      db.exec("INSERT INTO migrations (migration_id, name) VALUES (99, 'later')")
      db.close()
      expect(yield* problem(backUp(dataDir, join(dir, "later.tar")))).toBe(
        `${join(dataDir, "store.sqlite")}: was changed by a later version of edgewise (schema 99); back it up with that one`,
      )
      expect(namesIn(dir)).toEqual(["backup.tar", "other.tar"])
      chmodSync(dir, 0o700)
    }).pipe(Effect.scoped),
  )
})
