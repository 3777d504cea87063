// Receipts by day over each database: what is exported, what may become sums afterwards, and what comes late.
import { expect, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { audioUsage, textUsage } from "#domain/models/Usage.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { makeLedgerRows, type Receipt } from "#store/ledger/LedgerRows.ts"
import { dayMs } from "#store/ledger/ReceiptDays.ts"
import { type ExportedReceipt, ReceiptExports } from "#store/ledger/ReceiptExports.ts"
import { databaseNow } from "#store/sql/StoreNode.ts"
import { eachDialect } from "../Dialects.ts"

/** Days after all receipts of these tests: SQLite's clock is the test's. The store opens afterwards, so that it has nothing to catch up with. */
const later = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.andThen(TestClock.setTime(30 * dayMs), effect)

let ids = 0
const receiptOf = (orgId: string, day: number, microDollars: number, model = "llm"): Receipt => ({
  receiptId: `rcpt_${++ids}`,
  atMs: Math.floor(day * dayMs),
  orgId,
  userId: "user",
  keyId: "key",
  model,
  usage: textUsage(microDollars, 1),
  microDollars,
})

const exportAll = Effect.gen(function* () {
  const exports = yield* ReceiptExports
  const found: Array<ExportedReceipt> = []
  const days = yield* exports.due
  for (const day of days) {
    const begun = yield* exports.begin(day)
    const count = yield* exports.read(day, (some) => Effect.sync(() => void found.push(...some)))
    expect(yield* exports.complete(begun, count)).toBe(true)
  }
  return { days: days.map((day) => day / dayMs), ids: found.map(({ receipt_id }) => receipt_id).sort() }
})

/** The time of the store: that of the database, if nodes share it. */
const storeNow = Effect.flatMap(SqlClient.SqlClient, (sql) =>
  sql.onDialectOrElse({
    pg: () =>
      Effect.map(
        sql<{ readonly now: number }>`SELECT ${sql.literal(databaseNow)} AS now`,
        ([row]) => row!.now,
      ),
    orElse: () => Clock.currentTimeMillis,
  }),
)

/** Folds days before this one. The store may have read its clock a moment before. */
const foldBefore = (day: number) =>
  Effect.gen(function* () {
    const nowMs = yield* storeNow
    return yield* (yield* ReceiptExports).fold(nowMs - day * dayMs - 60_000)
  })

const charged = (name: string) =>
  Effect.map(
    Effect.flatMap(Accounts, (accounts) => accounts.showOrg(name)),
    ({ creditsMicroDollars }) => -creditsMicroDollars,
  )

eachDialect(({ fresh }) => {
  it.effect("change no sum from any day on when they become sums, and none does before its export", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const rows = yield* makeLedgerRows
      const receipt = fc.record({
        day: fc.integer({ min: 0, max: 5 }),
        ms: fc.integer({ min: 0, max: dayMs - 1 }),
        model: fc.constantFrom("llm", "tts"),
        audio: fc.boolean(),
        cost: fc.integer({ min: 0, max: 1000 }),
      })
      const samples = fc.sample(fc.array(receipt, { minLength: 1, maxLength: 300 }), { numRuns: 4, seed: 8 })
      const orgs: Array<{ readonly id: string; readonly days: ReadonlyArray<number> }> = []
      for (const [nth, receipts] of samples.entries()) {
        const { id } = yield* accounts.createOrg({ name: `org${nth}`, paymentMethod: true })
        yield* rows.write(
          receipts.map(({ audio, cost, day, model, ms }) => ({
            ...receiptOf(id, day + ms / dayMs, cost, model),
            usage: audio ? audioUsage("speech", cost, 1000) : textUsage(cost, 1),
          })),
        )
        orgs.push({ id, days: receipts.map(({ day }) => day) })
      }
      const byDay = Effect.forEach(orgs, ({ id }) =>
        Effect.forEach([0, 1, 2, 3, 4, 5, 6], (day) => rows.usage(id, day * dayMs)),
      )
      const left = Effect.forEach(orgs, ({ id }) =>
        Effect.map(rows.receipts(id, 0, 1000), (found) => found.length),
      )
      const before = yield* byDay
      expect(yield* foldBefore(7)).toEqual({ receipts: 0, areOthersWaiting: true })
      expect(yield* left).toEqual(orgs.map(({ days }) => days.length))
      const all = orgs.flatMap(({ days }) => days)
      const exported = yield* exportAll
      expect(exported.days).toEqual([...new Set(all)].sort())
      expect(exported.ids.length).toBe(all.length)
      for (const at of [0, 1.5, 1.5, 3, 7]) {
        yield* foldBefore(at)
        expect(yield* byDay).toEqual(before)
        expect(yield* left).toEqual(
          orgs.map(({ days }) => days.filter((day) => day >= Math.floor(at)).length),
        )
      }
      expect(yield* exportAll).toEqual({ days: [], ids: [] })
    }).pipe(Effect.provide(fresh), later),
  )

  it.effect("that come after the export of their day are exported before they become sums", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const rows = yield* makeLedgerRows
      const { id } = yield* accounts.createOrg({ name: "acme", paymentMethod: true })
      const [first, second, third] = [receiptOf(id, 3, 1), receiptOf(id, 3.5, 20), receiptOf(id, 3.9, 300)]
      yield* rows.write([first!])
      expect(yield* exportAll).toEqual({ days: [3], ids: [first!.receiptId] })
      yield* rows.write([second!])
      expect(yield* foldBefore(5)).toEqual({ receipts: 0, areOthersWaiting: true })
      expect((yield* exportAll).ids).toEqual([first!.receiptId, second!.receiptId].sort())
      expect(yield* foldBefore(5)).toEqual({ receipts: 2, areOthersWaiting: false })
      // Also when the day is summed already.
      yield* rows.write([third!])
      expect(yield* foldBefore(5)).toEqual({ receipts: 0, areOthersWaiting: true })
      expect(yield* exportAll).toEqual({ days: [3], ids: [third!.receiptId] })
      expect(yield* foldBefore(5)).toEqual({ receipts: 1, areOthersWaiting: false })
      expect(yield* rows.usage(id, 0)).toMatchObject([{ requests: 3, microDollars: 321 }])
      expect(yield* charged("acme")).toBe(321)
    }).pipe(Effect.provide(fresh), later),
  )

  it.effect("that come while their day is being exported have it exported again", () =>
    Effect.gen(function* () {
      const { id } = yield* (yield* Accounts).createOrg({ name: "acme", paymentMethod: true })
      const rows = yield* makeLedgerRows
      const exports = yield* ReceiptExports
      yield* rows.write([receiptOf(id, 3, 1)])
      const begun = yield* exports.begin(3 * dayMs)
      expect(yield* exports.read(3 * dayMs, () => Effect.void)).toBe(1)
      yield* rows.write([receiptOf(id, 3, 2)])
      expect(yield* exports.complete(begun, 1)).toBe(false)
      expect((yield* exportAll).ids.length).toBe(2)
      // Two exports at once: one of them counts.
      yield* rows.write([receiptOf(id, 4, 2)])
      const one = yield* exports.begin(4 * dayMs)
      const two = yield* exports.begin(4 * dayMs)
      expect([yield* exports.complete(one, 1), yield* exports.complete(two, 1)]).toEqual([false, true])
    }).pipe(Effect.provide(fresh), later),
  )

  it.effect("of today and yesterday are not exported yet", () =>
    Effect.gen(function* () {
      const { id } = yield* (yield* Accounts).createOrg({ name: "acme", paymentMethod: true })
      const rows = yield* makeLedgerRows
      const today = Math.floor((yield* storeNow) / dayMs)
      yield* rows.write([-2, -1, 0].map((by) => receiptOf(id, today + by, 1)))
      expect((yield* exportAll).days).toEqual([today - 2])
    }).pipe(Effect.provide(fresh), later),
  )

  it.effect("are exported with names, and without those of what was deleted", () =>
    Effect.gen(function* () {
      const accounts = yield* Accounts
      const rows = yield* makeLedgerRows
      const { apiKey } = yield* accounts.createKey({ org: "acme", user: "ann" })
      const principal = yield* accounts.authenticate(apiKey)
      const named = { ...receiptOf(principal.orgId, 3, 1), userId: principal.userId }
      yield* rows.write([named, receiptOf("org_gone", 3, 2)])
      const found: Array<ExportedReceipt> = []
      const exports = yield* ReceiptExports
      yield* exports.read(3 * dayMs, (some) => Effect.sync(() => void found.push(...some)))
      const names = found.map(({ org, user_name }) => [org, user_name])
      expect(names).toEqual(
        expect.arrayContaining([
          ["acme", "ann"],
          [null, null],
        ]),
      )
    }).pipe(Effect.provide(fresh), later),
  )
})
