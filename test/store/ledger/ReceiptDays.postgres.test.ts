// Tables of days on a shared store: a receipt has one place and is charged once, whichever table it is in, whichever version wrote it, and
// also after it became a part of a sum.
import { readFileSync, writeFileSync } from "node:fs"
import { Clock, Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { textUsage } from "#domain/models/Usage.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { makeLedgerRows, type Receipt } from "#store/ledger/LedgerRows.ts"
import { dayMs, dayOf, foldedIdMs, ledgerTable, spooledMs, tableOfDay } from "#store/ledger/ReceiptDays.ts"
import { ReceiptExports } from "#store/ledger/ReceiptExports.ts"
import { expiredFileIn, spoolFileIn } from "#store/ledger/ReceiptSpool.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { type Store, storeLayer } from "#store/Store.ts"
import { defaultRetention, Retention } from "#store/sql/Retention.ts"
import { needs } from "../../support/groups/Needs.ts"
import { temporaryDir } from "../../support/nodes/TestNode.ts"
import { sharedPostgres } from "../../support/servers/PostgresServer.ts"

const keptMs = 2 * dayMs

describe("a shared store that sums up old receipts", needs("postgresql"), () => {
  let url = ""
  const dir = temporaryDir()
  beforeAll(async () => {
    url = await (await sharedPostgres()).freshUrl()
  })
  afterAll(() => dir.remove())

  /** Runs on a node that starts and ends. */
  const onNode = <A, E>(effect: Effect.Effect<A, E, Store>, receiptMs: number | undefined = keptMs) =>
    Effect.runPromise(
      effect.pipe(
        Effect.provide(
          Layer.fresh(storeLayer({ dataDir: dir.path, databaseUrl: url, databaseGraceMs: 1_000 })).pipe(
            Layer.provideMerge(Layer.succeed(Retention, { ...defaultRetention, receiptMs })),
          ),
        ),
      ),
    )

  let ids = 0
  const receiptOf = (orgId: string, atMs: number, id = `rcpt_day${++ids}`): Receipt => ({
    receiptId: id,
    atMs,
    orgId,
    userId: "user",
    keyId: "key",
    model: "llm",
    usage: textUsage(1, 1),
    microDollars: 7,
  })
  const newOrg = (name: string) =>
    Effect.flatMap(Accounts, (accounts) => accounts.createOrg({ name, creditsMicroDollars: 1_000 }))
  const write = (...receipts: ReadonlyArray<Receipt>) =>
    Effect.flatMap(makeLedgerRows, (rows) => rows.exchange(receipts, new Map()))
  /** While the node's clock shows that time. */
  const writeAt = (wallMs: number, ...receipts: ReadonlyArray<Receipt>) =>
    Clock.clockWith((clock) => {
      const still: Clock.Clock = Object.assign(Object.create(clock), {
        currentTimeMillis: Effect.succeed(wallMs),
        currentTimeMillisUnsafe: () => wallMs,
      })
      return Effect.provideService(write(...receipts), Clock.Clock, still)
    })
  const creditsOf = (name: string) =>
    Effect.map(
      Effect.flatMap(Accounts, (accounts) => accounts.showOrg(name)),
      ({ creditsMicroDollars }) => creditsMicroDollars,
    )
  /** Names of the tables in which a receipt is. */
  const placesOf = ({ receiptId }: Receipt) =>
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      Effect.map(
        sql<{ readonly place: string }>`
          SELECT c.relname AS place FROM usage_ledger l JOIN pg_class c ON c.oid = l.tableoid
          WHERE l.receipt_id = ${receiptId}`,
        (found) => found.map(({ place }) => place),
      ),
    )
  /** As the version before writes it. True if it takes it for new. */
  const writtenBefore = (receipt: Receipt) =>
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      Effect.map(
        sql`
          INSERT INTO usage_ledger (receipt_id, at_ms, org_id, user_id, key_id, model, kind, input_tokens,
                                    output_tokens, audio_ms, micro_dollars)
          VALUES (${receipt.receiptId}, ${receipt.atMs}, ${receipt.orgId}, 'user', 'key', 'llm', 'text', 1, 1, 0, 7)
          ON CONFLICT (receipt_id) DO NOTHING RETURNING receipt_id`,
        (rows) => rows.length === 1,
      ),
    )
  /** A table of a day that has passed, which a node made when it was that day. */
  const makeTable = (day: number) =>
    Effect.flatMap(SqlClient.SqlClient, (sql) =>
      sql.unsafe(
        `CREATE TABLE ${tableOfDay(day)} (LIKE ${ledgerTable} INCLUDING ALL,
           CONSTRAINT receipts_of_day CHECK (at_ms >= ${day} AND at_ms < ${day + dayMs})) INHERITS (${ledgerTable})`,
      ),
    )
  const exportDay = (day: number) =>
    Effect.gen(function* () {
      const exports = yield* ReceiptExports
      const begun = yield* exports.begin(day)
      expect(yield* exports.complete(begun, yield* exports.read(day, () => Effect.void))).toBe(true)
    })

  it("has a receipt of this moment in the table of its day, and one that may be a repeat in the common one, once", () =>
    onNode(
      Effect.gen(function* () {
        const { id } = yield* newOrg("now")
        const nowMs = Date.now()
        const fresh = receiptOf(id, nowMs)
        const job = receiptOf(id, nowMs, "job_1")
        const earlier = receiptOf(id, nowMs - 60_000)
        yield* writeAt(nowMs + 1_000, fresh, job, earlier, fresh)
        expect(yield* placesOf(fresh)).toEqual([tableOfDay(dayOf(fresh.atMs))])
        expect(yield* placesOf(job)).toEqual([ledgerTable])
        expect(yield* placesOf(earlier)).toEqual([ledgerTable])
        expect(yield* creditsOf("now")).toBe(1_000 - 3 * 7)
        // Again: as it was, as after an outage, and by the version before.
        yield* writeAt(nowMs + 1_000, fresh, job, earlier)
        yield* writeAt(nowMs + 5_100, fresh)
        expect(yield* writtenBefore(fresh)).toBe(false)
        expect(yield* placesOf(fresh)).toEqual([tableOfDay(dayOf(fresh.atMs))])
        expect(yield* creditsOf("now")).toBe(1_000 - 3 * 7)
        // What that version writes first is not written again either.
        const theirs = receiptOf(id, Date.now() - 60_000)
        expect(yield* writtenBefore(theirs)).toBe(true)
        yield* write(theirs)
        expect(yield* creditsOf("now")).toBe(1_000 - 3 * 7)
        expect(yield* (yield* UsageLedger).usage(id, 0)).toMatchObject([{ requests: 4 }])
      }),
    ))

  it("drops the table of an exported day for its sums, and charges none of its receipts again", async () => {
    const day = dayOf(Date.now()) - 5 * dayMs
    const { inTable, late, org } = await onNode(
      Effect.gen(function* () {
        const { id } = yield* newOrg("old")
        const sql = yield* SqlClient.SqlClient
        yield* makeTable(day)
        const inTable = Array.from({ length: 40 }, (_, nth) => receiptOf(id, day + nth))
        for (const receipt of inTable) {
          yield* sql.unsafe(
            `INSERT INTO ${tableOfDay(day)} VALUES ($1, $2, $3, 'user', 'key', 'llm', 'text', 1, 1, 0, 7)`,
            [receipt.receiptId, receipt.atMs, id],
          )
        }
        const late = receiptOf(id, day + 50)
        yield* write(late)
        expect(yield* placesOf(late)).toEqual([ledgerTable])
        const { fold } = yield* ReceiptExports
        expect(yield* fold(keptMs)).toEqual({ receipts: 0, areOthersWaiting: true })
        yield* exportDay(day)
        expect(yield* fold(keptMs)).toEqual({ receipts: 41, areOthersWaiting: false })
        expect(yield* sql`SELECT to_regclass(${tableOfDay(day)}) AS there`).toEqual([{ there: null }])
        expect(yield* (yield* UsageLedger).usage(id, 0)).toMatchObject([
          { requests: 41, microDollars: 41 * 7 },
        ])
        yield* write(inTable[0]!, late)
        expect(yield* writtenBefore(inTable[1]!)).toBe(false)
        return { inTable, late, org: id }
      }),
    )
    // A node that was off for days has them in its file.
    writeFileSync(spoolFileIn(dir.path), [...inTable, late].map((one) => `${JSON.stringify(one)}\n`).join(""))
    await onNode(
      Effect.gen(function* () {
        expect(yield* creditsOf("old")).toBe(1_000 - 7)
        expect(yield* (yield* UsageLedger).usage(org, 0)).toMatchObject([{ requests: 41 }])
      }),
    )
    expect(readFileSync(spoolFileIn(dir.path), "utf8")).toBe("")
  })

  it("keeps the ids of what was summed for longer than a file of receipts is written by itself", async () => {
    expect(foldedIdMs).toBeGreaterThan(spooledMs + 2 * dayMs)
    const [young, old] = [Date.now() - spooledMs + 60_000, Date.now() - spooledMs - 60_000]
    const [first, second] = await onNode(
      Effect.gen(function* () {
        const { id } = yield* newOrg("spooled")
        return [receiptOf(id, young), receiptOf(id, old)] as const
      }),
    )
    writeFileSync(spoolFileIn(dir.path), `${JSON.stringify(first)}\n${JSON.stringify(second)}\n`)
    await onNode(
      Effect.gen(function* () {
        expect(yield* creditsOf("spooled")).toBe(1_000 - 7)
        const sql = yield* SqlClient.SqlClient
        yield* exportDay(dayOf(young))
        yield* sql`INSERT INTO folded_receipts (receipt_id, day_ms) VALUES ('rcpt_x', ${dayOf(Date.now() - foldedIdMs) - dayMs})`
        expect((yield* (yield* ReceiptExports).fold(keptMs)).receipts).toBe(1)
        const ids =
          yield* sql`SELECT receipt_id FROM folded_receipts WHERE receipt_id IN ('rcpt_x', ${first.receiptId})`
        expect(ids).toEqual([{ receipt_id: first.receiptId }])
      }),
    )
    expect(readFileSync(expiredFileIn(dir.path), "utf8")).toContain(second.receiptId)
    expect(readFileSync(spoolFileIn(dir.path), "utf8")).toBe("")
  })

  it("has one table where nothing is summed up", async () => {
    const elsewhere = await (await sharedPostgres()).freshUrl()
    const before = url
    url = elsewhere
    try {
      await onNode(
        Effect.gen(function* () {
          const { id } = yield* newOrg("plain")
          const fresh = receiptOf(id, Date.now())
          yield* write(fresh)
          expect(yield* placesOf(fresh)).toEqual([ledgerTable])
          const sql = yield* SqlClient.SqlClient
          expect(
            yield* sql`SELECT 1 FROM pg_trigger WHERE tgname = 'check_receipt' AND tgrelid = to_regclass('usage_ledger')`,
          ).toEqual([])
        }),
        Number.MAX_SAFE_INTEGER,
      )
    } finally {
      url = before
    }
  })
})
