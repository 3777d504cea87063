// The data directory of every released version opens with the present code, with everything that was in it. Its fixture is made once
// (test/support/fixtures). An upgrade prints one line; a store of a later version is refused with one.
import { mkdirSync } from "node:fs"
import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { decodeProtectedHeader, jwtVerify } from "jose"
import { Accounts } from "#store/accounts/Accounts.ts"
import { ClientSecrets } from "#store/accounts/ClientSecrets.ts"
import { developmentKey } from "#store/accounts/DevKey.ts"
import { IdempotencyStore } from "#store/idempotency/IdempotencyStore.ts"
import { Jobs } from "#store/ledger/Jobs.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { newestSchema } from "#store/migrations/index.ts"
import { type Store, storeLayer } from "#store/Store.ts"
import { SigningKeys } from "#store/signing/SigningKeys.ts"
import { openDataDirectory, versions } from "../../support/fixtures/DataDirectory.ts"
import { madeAt } from "../../support/fixtures/makeDataDirectory.ts"
import { ownJobs } from "../../support/nodes/JobRow.ts"
import { collectLines } from "../../support/process/LogLines.ts"
import { beforeDeletions } from "../EarlierSchema.ts"
import { tempDir } from "../TempDir.ts"

const inStore = <A, E, R>(dataDir: string, effect: Effect.Effect<A, E, R>) =>
  Effect.provide(effect, Layer.fresh(storeLayer({ dataDir })))

/** Opens the store and returns the lines of upgrades. */
const upgradeLines = (dataDir: string) =>
  Effect.suspend(() => {
    const { layer, lines } = collectLines()
    return Effect.map(Effect.provide(inStore(dataDir, Effect.void), layer), () =>
      lines.filter(({ message }) => JSON.stringify(message).includes("upgraded")),
    )
  })

const schemaOf = (dataDir: string): number => {
  const db = new DatabaseSync(join(dataDir, "store.sqlite"))
  const row = db.prepare("SELECT MAX(migration_id) AS schema FROM migrations").get() as { schema: number }
  db.close()
  return row.schema
}

describe.each(versions())("a data directory of version %s", (version) => {
  it.effect("opens with every kind of row", () =>
    Effect.gen(function* () {
      yield* TestClock.setTime(Date.parse(madeAt))
      const dataDir = join(yield* tempDir, "data")
      const known = openDataDirectory(version, dataDir)
      const from = schemaOf(dataDir)
      const lines = yield* upgradeLines(dataDir)
      expect(lines.map(({ annotations }) => annotations)).toEqual(
        from === newestSchema ? [] : [{ place: join(dataDir, "store.sqlite"), from, to: newestSchema }],
      )

      const check = Effect.gen(function* () {
        const accounts = yield* Accounts
        const principal = yield* accounts.authenticate(known.apiKey)
        expect(principal).toMatchObject({ orgName: "acme", userName: "ann", scope: "read-write" })
        expect((yield* Effect.flip(accounts.authenticate(known.revokedKey))).reason).toBe("invalid-key")
        expect(yield* developmentKey(dataDir)).toMatchObject({
          apiKey: known.developmentKey,
          org: { name: "dev" },
        })
        expect(yield* accounts.showOrg("invoiced")).toMatchObject({ paymentMethod: true })
        expect((yield* accounts.listKeys("ops"))[0]).toMatchObject({ scope: "superadmin" })
        expect(yield* accounts.showOrg("acme")).toMatchObject({ creditsMicroDollars: 4_999_950 })

        const ledger = yield* UsageLedger
        const sums = (yield* ledger.usage(known.orgId, 0)).map(({ microDollars, model, requests }) => [
          model,
          requests,
          microDollars,
        ])
        expect(sums).toEqual([
          ["llm-3.5-27b", 2, 39],
          ["tts-82m", 1, 9],
          ["stt-large-v3-turbo", 1, 2],
        ])
        expect(yield* ledger.receipts(known.orgId, 0, 10)).toHaveLength(3)

        const jobs = yield* Jobs
        expect(yield* jobs.find(known.jobs.completed)).toMatchObject({
          status: "completed",
          decodedMs: 1_500,
          options: { language: "en", prompt: "names: Zoë", granularities: ["word"] },
          transcript: { text: "It's what was said.", segments: [{ end: 1.5 }] },
        })
        expect(yield* jobs.find(known.jobs.failed)).toMatchObject({ note: "file: holds no audio" })
        expect(yield* jobs.find(known.jobs.cancelled)).toMatchObject({ status: "cancelled" })
        expect(yield* jobs.take(ownJobs)).toMatchObject({ id: known.jobs.accepted })

        const answers = yield* IdempotencyStore
        const { orgId, userId } = principal
        const found = yield* answers.find({ id: known.answerId, orgId, userId })
        expect(Buffer.from(found?.body ?? []).toString()).toBe('{"answer":"it\'s kept"}')
        const large = yield* answers.find({ id: "c".repeat(64), orgId, userId })
        expect(large).toMatchObject({ status: 200, body: undefined })
        expect(yield* answers.find({ id: "half written", orgId, userId })).toBeUndefined()

        const secret = yield* (yield* ClientSecrets).find(known.clientSecret)
        expect(secret).toMatchObject({ keyId: principal.keyId, terms: '{"session":{"type":"realtime"}}' })

        const { kid = "" } = decodeProtectedHeader(known.sessionToken)
        const publicKey = yield* (yield* SigningKeys).find(kid)
        const { payload } = yield* Effect.promise(() =>
          jwtVerify(known.sessionToken, publicKey!, { currentDate: new Date(madeAt) }),
        )
        expect(payload).toMatchObject({ org: "acme", key_id: principal.keyId })
      })
      const keys = SigningKeys.layer({ dataDir, makesKeys: false, rotateEveryMs: 1e12 })
      yield* inStore(dataDir, Effect.provide(check, keys))
      expect(yield* upgradeLines(dataDir)).toEqual([])
    }).pipe(Effect.scoped),
  )
})

describe("a store", () => {
  const opened = (dataDir: string, effect: Effect.Effect<unknown, unknown, Store> = Effect.void) =>
    inStore(dataDir, effect)

  it.effect("of an earlier schema is upgraded once, with one line; a new one has none", () =>
    Effect.gen(function* () {
      const dataDir = yield* tempDir
      expect(yield* upgradeLines(dataDir)).toEqual([])
      yield* opened(dataDir, beforeDeletions)
      const lines = yield* upgradeLines(dataDir)
      expect(lines).toMatchObject([
        {
          level: "INFO",
          message: "the store was upgraded",
          annotations: { place: join(dataDir, "store.sqlite"), from: 7, to: newestSchema },
        },
      ])
      expect(yield* upgradeLines(dataDir)).toEqual([])
    }).pipe(Effect.scoped),
  )

  it.effect("of a later schema is refused with one line, and stays as it is", () =>
    Effect.gen(function* () {
      const dataDir = join(yield* tempDir, "data")
      mkdirSync(dataDir)
      yield* opened(
        dataDir,
        Effect.flatMap(
          SqlClient.SqlClient,
          (sql) => sql`INSERT INTO migrations (migration_id, name) VALUES (${newestSchema + 1}, 'later')`,
        ),
      )
      const refused = yield* Effect.flip(opened(dataDir))
      expect(String((refused as Error).message)).toBe(
        `${join(dataDir, "store.sqlite")}: was changed by a later version of edgewise (schema ${newestSchema + 1}); start that one, or use another database`,
      )
      expect(schemaOf(dataDir)).toBe(newestSchema + 1)
    }).pipe(Effect.scoped),
  )

  it.effect("of a later schema opens if that version says that this one can work beside it", () =>
    Effect.gen(function* () {
      const dataDir = join(yield* tempDir, "data")
      mkdirSync(dataDir)
      const later = (beside: number) =>
        opened(
          dataDir,
          Effect.gen(function* () {
            const sql = yield* SqlClient.SqlClient
            yield* sql`DELETE FROM migrations WHERE migration_id > ${newestSchema}`
            yield* sql`INSERT INTO migrations (migration_id, name) VALUES (${newestSchema + 1}, 'later')`
            yield* sql`UPDATE meta SET value = ${`${newestSchema + 1} ${beside}`} WHERE name = 'oldest schema beside'`
          }),
        )
      yield* later(newestSchema)
      yield* opened(dataDir)
      // It says the same again and leaves what the later one has said.
      yield* later(newestSchema + 1)
      expect(yield* Effect.flip(opened(dataDir))).toMatchObject({ _tag: "StoreUnavailable" })
    }).pipe(Effect.scoped),
  )
})
