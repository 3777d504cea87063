import { join } from "node:path"
import { DatabaseSync } from "node:sqlite"
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { audioUsage, textUsage } from "#domain/models/Usage.ts"
import { PaymentRequired } from "#domain/wire/Errors.ts"
import { Accounts, type Principal } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { sqliteStoreLayer, storeLayer } from "#store/Store.ts"
import { eachDialect } from "../Dialects.ts"
import { tempDir } from "../TempDir.ts"

const memory = sqliteStoreLayer(":memory:")

/** A user of a new organization, with what a test needs of both. */
const member = Effect.fnUntraced(function* (
  org: string,
  options: { readonly creditsMicroDollars?: number; readonly paymentMethod?: boolean },
) {
  const accounts = yield* Accounts
  yield* accounts.createOrg({ name: org, ...options })
  const { apiKey } = yield* accounts.createKey({ org })
  return yield* accounts.authenticate(apiKey)
})

const textWork = (microDollars: number) => ({ model: "llm", usage: textUsage(3, 4), microDollars })

const receipts = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const rows = yield* sql<{ n: number; sum: number | null }>`
    SELECT COUNT(*) AS n, SUM(micro_dollars) AS sum FROM usage_ledger`
  return { n: rows[0]?.n, sum: rows[0]?.sum ?? 0 }
})
const creditsOf = (principal: Principal) =>
  Effect.flatMap(Accounts, (accounts) =>
    Effect.map(accounts.showOrg(principal.orgName), (org) => org.creditsMicroDollars),
  )

eachDialect(({ fresh, shared }) => {
  it.effect("refuses an organization that cannot pay and admits an invoiced one", () =>
    Effect.gen(function* () {
      const ledger = yield* UsageLedger
      const broke = yield* member("broke", {})
      expect(yield* Effect.flip(ledger.reserve(broke, 0))).toEqual(new PaymentRequired())
      const invoiced = yield* member("invoiced", { paymentMethod: true })
      expect((yield* ledger.reserve(invoiced, 10_000_000_000)).microDollars).toBe(10_000_000_000)
      const prepaid = yield* member("prepaid", { creditsMicroDollars: 100 })
      yield* ledger.reserve(prepaid, 60)
      yield* ledger.reserve(prepaid, 40)
      expect(yield* Effect.flip(ledger.reserve(prepaid, 1))).toEqual(new PaymentRequired())
      // Reserved money still belongs to the organization: work that costs nothing may go on.
      yield* ledger.reserve(prepaid, 0)
    }).pipe(Effect.scoped, Effect.provide(fresh)),
  )

  it.effect("never lets parallel requests spend the same money", () =>
    Effect.gen(function* () {
      const ledger = yield* UsageLedger
      const user = yield* member("acme", { creditsMicroDollars: 1000 })
      const attempts = yield* Effect.all(
        Array.from({ length: 100 }, () => Effect.result(ledger.reserve(user, 30))),
        { concurrency: "unbounded" },
      )
      const held = attempts.flatMap((attempt) => (attempt._tag === "Success" ? [attempt.success] : []))
      expect(held).toHaveLength(33)
      yield* Effect.forEach(held, (reservation) => ledger.settle(reservation, textWork(30)), {
        concurrency: "unbounded",
      })
      expect(yield* Effect.flip(ledger.reserve(user, 11))).toEqual(new PaymentRequired())
      yield* ledger.reserve(user, 10)
      yield* ledger.flush
      expect(yield* creditsOf(user)).toBe(10)
      expect(yield* receipts).toEqual({ n: 33, sum: 990 })
    }).pipe(Effect.scoped, Effect.provide(fresh)),
  )

  it.effect(
    "finds a receipt and the balance behind it as soon as the work is settled, for its organization only",
    () =>
      Effect.gen(function* () {
        const ledger = yield* UsageLedger
        const user = yield* member("reader", { creditsMicroDollars: 100 })
        const other = yield* member("stranger", { paymentMethod: true })
        const id = yield* ledger.settle(yield* ledger.reserve(user, 30), textWork(30))
        expect(yield* ledger.receipt(user.orgId, id)).toMatchObject([
          { receiptId: id, model: "llm", kind: "text", inputTokens: 3, outputTokens: 4, microDollars: 30 },
        ])
        expect(yield* ledger.balance(user.orgId)).toMatchObject({ credits: 70, paymentMethod: false })
        expect(yield* ledger.receipt(other.orgId, id)).toEqual([])
        expect(yield* ledger.receipt(user.orgId, "rcpt_unknown")).toEqual([])
        expect(yield* ledger.balance(other.orgId)).toMatchObject({ credits: 0, paymentMethod: true })
      }).pipe(Effect.scoped, Effect.provide(fresh)),
  )

  it.effect("gives back what was not used: settled for less, cancelled, or left behind by its scope", () =>
    Effect.gen(function* () {
      const ledger = yield* UsageLedger
      const user = yield* member("acme", { creditsMicroDollars: 100 })
      const all = ledger.reserve(user, 100)

      yield* ledger.cancel(yield* all)
      yield* Effect.scoped(all)
      expect(
        Exit.isFailure(yield* Effect.exit(Effect.scoped(Effect.andThen(all, Effect.fail("broke off"))))),
      ).toBe(true)

      const reservation = yield* all
      yield* ledger.settle(reservation, textWork(1))
      // The second call has no effect.
      yield* ledger.settle(reservation, textWork(50))
      yield* ledger.cancel(reservation)
      expect(yield* Effect.flip(ledger.reserve(user, 100))).toEqual(new PaymentRequired())
      yield* ledger.reserve(user, 99)
      yield* ledger.flush
      expect(yield* receipts).toEqual({ n: 1, sum: 1 })
    }).pipe(Effect.scoped, Effect.provide(fresh)),
  )

  it.effect(
    "charges repeated work once: equal receipt ids are one receipt, in a batch and across batches",
    () =>
      Effect.gen(function* () {
        const ledger = yield* UsageLedger
        const user = yield* member("acme", { creditsMicroDollars: 1000 })
        const job = (receiptId: string) =>
          Effect.flatMap(ledger.reserve(user, 100), (held) =>
            ledger.settle(held, { ...textWork(100), receiptId }),
          )
        expect(yield* job("job_1")).toBe("job_1")
        yield* job("job_1")
        yield* ledger.flush
        yield* job("job_1")
        yield* job("job_2")
        yield* ledger.flush
        expect(yield* receipts).toEqual({ n: 2, sum: 200 })
        expect(yield* creditsOf(user)).toBe(800)
        // The balance in memory has changed as well.
        yield* ledger.reserve(user, 800)
      }).pipe(Effect.scoped, Effect.provide(fresh)),
  )

  it.effect("notices credits that another process adds", () =>
    Effect.gen(function* () {
      const { open } = yield* shared
      yield* Effect.gen(function* () {
        const ledger = yield* UsageLedger
        const user = yield* member("acme", {})
        expect(yield* Effect.flip(ledger.reserve(user, 1))).toEqual(new PaymentRequired())
        yield* Effect.flatMap(Accounts, (accounts) => accounts.creditOrg("acme", 5)).pipe(
          Effect.provide(yield* open),
        )
        yield* TestClock.adjust("5 seconds")
        yield* ledger.reserve(user, 5)
        expect(yield* Effect.flip(ledger.reserve(user, 1))).toEqual(new PaymentRequired())
      }).pipe(Effect.provide(yield* open))
    }).pipe(Effect.scoped),
  )

  it.effect("uses up an invoiced organization's credits first, and then counts what it owes", () =>
    Effect.gen(function* () {
      const ledger = yield* UsageLedger
      const user = yield* member("acme", { creditsMicroDollars: 100, paymentMethod: true })
      for (const [cost, left] of [
        [60, 40],
        [60, -20],
        [60, -80],
      ] as const) {
        yield* ledger.settle(yield* ledger.reserve(user, cost), textWork(cost))
        yield* ledger.flush
        expect(yield* creditsOf(user)).toBe(left)
      }
      expect(yield* receipts).toEqual({ n: 3, sum: 180 })
    }).pipe(Effect.scoped, Effect.provide(fresh)),
  )

  it.effect("sums usage by model, since a time, of one organization", () =>
    Effect.gen(function* () {
      const ledger = yield* UsageLedger
      const user = yield* member("acme", { paymentMethod: true })
      const other = yield* member("other", { paymentMethod: true })
      const settle = (who: Principal, settlement: Parameters<typeof ledger.settle>[1]) =>
        Effect.flatMap(ledger.reserve(who, 0), (held) => ledger.settle(held, settlement))
      yield* settle(user, { model: "llm", usage: textUsage(1, 2), microDollars: 10 })
      yield* TestClock.adjust(1000)
      yield* settle(user, { model: "llm", usage: textUsage(10, 20), microDollars: 100 })
      yield* settle(user, {
        model: "stt",
        usage: audioUsage("transcription", 16_000, 16_000),
        microDollars: 7,
      })
      yield* settle(other, { model: "llm", usage: textUsage(5, 5), microDollars: 5 })
      expect(yield* ledger.usage(user.orgId, 0)).toEqual([
        {
          model: "llm",
          kind: "text",
          requests: 2,
          inputTokens: 11,
          outputTokens: 22,
          audioMs: 0,
          microDollars: 110,
        },
        {
          model: "stt",
          kind: "transcription",
          requests: 1,
          inputTokens: 0,
          outputTokens: 0,
          audioMs: 1000,
          microDollars: 7,
        },
      ])
      expect((yield* ledger.usage(user.orgId, 1000)).map((row) => row.requests)).toEqual([1, 1])
      expect(yield* ledger.usage(user.orgId, 1001)).toEqual([])
    }).pipe(Effect.scoped, Effect.provide(fresh)),
  )
})

// Only SQLite guarantees that a statement is done by the time of the check.

it.effect("writes a whole burst in one transaction after 20 ms", () =>
  Effect.gen(function* () {
    const ledger = yield* UsageLedger
    const sql = yield* SqlClient.SqlClient
    const user = yield* member("acme", { creditsMicroDollars: 1_000_000 })
    yield* sql`CREATE TABLE charges (credits BIGINT)`
    yield* sql`CREATE TRIGGER charged AFTER UPDATE ON orgs
      BEGIN INSERT INTO charges VALUES (NEW.credits_micro_dollars); END`
    for (let i = 0; i < 100; i++) yield* ledger.settle(yield* ledger.reserve(user, 10), textWork(10))
    expect(yield* receipts).toEqual({ n: 0, sum: 0 })
    yield* TestClock.adjust(19)
    expect(yield* receipts).toEqual({ n: 0, sum: 0 })
    yield* TestClock.adjust(1)
    expect(yield* receipts).toEqual({ n: 100, sum: 1000 })
    // One change of the balance, not a hundred.
    expect(yield* sql`SELECT credits FROM charges`).toEqual([{ credits: 999_000 }])
    yield* ledger.settle(yield* ledger.reserve(user, 10), textWork(10))
    yield* TestClock.adjust(20)
    expect(yield* receipts).toEqual({ n: 101, sum: 1010 })
  }).pipe(Effect.scoped, Effect.provide(memory)),
)

it.effect("writes at once when too much is on its way", () =>
  Effect.gen(function* () {
    const ledger = yield* UsageLedger
    const user = yield* member("acme", { creditsMicroDollars: 1_000_000 })
    const work = Effect.flatMap(ledger.reserve(user, 1), (reservation) =>
      ledger.settle(reservation, textWork(1)),
    )
    yield* Effect.all(
      Array.from({ length: 1000 }, () => work),
      { concurrency: "unbounded", discard: true },
    )
    // No time has passed: at most one full queue may still be waiting.
    expect((yield* receipts).n).toBeGreaterThanOrEqual(1000 - 128)
    yield* ledger.flush
    expect(yield* receipts).toEqual({ n: 1000, sum: 1000 })
    expect(yield* creditsOf(user)).toBe(999_000)
  }).pipe(Effect.scoped, Effect.provide(memory)),
)

it.effect("loses what was on its way in a crash, and nothing else", () =>
  Effect.gen(function* () {
    const dataDir = yield* tempDir
    const crashing = yield* Scope.make()
    const node = yield* Layer.buildWithScope(storeLayer({ dataDir }), crashing)
    const user = yield* Effect.gen(function* () {
      const ledger = yield* UsageLedger
      const user = yield* member("acme", { creditsMicroDollars: 1000 })
      for (let i = 0; i < 3; i++) yield* ledger.settle(yield* ledger.reserve(user, 100), textWork(100))
      yield* TestClock.adjust(20)
      for (let i = 0; i < 2; i++) yield* ledger.settle(yield* ledger.reserve(user, 100), textWork(100))
      return user
    }).pipe(Effect.scoped, Effect.provide(node))

    // The rows that a new process finds after a crash of the old one.
    const seen = new DatabaseSync(join(dataDir, "store.sqlite"), { readOnly: true })
    const credits = seen.prepare("SELECT credits_micro_dollars AS credits FROM orgs").all()
    const rows = seen.prepare("SELECT SUM(micro_dollars) AS sum FROM usage_ledger").all()
    seen.close()
    expect([credits, rows]).toEqual([[{ credits: 700 }], [{ sum: 300 }]])

    // An orderly end writes the remaining receipts.
    yield* Scope.close(crashing, Exit.void)
    yield* Effect.gen(function* () {
      expect(yield* creditsOf(user)).toBe(500)
      expect(yield* receipts).toEqual({ n: 5, sum: 500 })
    }).pipe(Effect.provide(Layer.fresh(storeLayer({ dataDir }))))
  }).pipe(Effect.scoped),
)

it.effect("loses no receipt where the queue is filled again while a full one is written", () =>
  Effect.gen(function* () {
    const ledger = yield* UsageLedger
    const sql = yield* SqlClient.SqlClient
    const user = yield* member("acme", { creditsMicroDollars: 1_000 })
    const full = 128
    const held = yield* Effect.forEach(Array.from({ length: 2 * full + 1 }), () => ledger.reserve(user, 1))
    const settle = (from: number, to: number) =>
      Effect.forkChild(
        Effect.forEach(held.slice(from, to), (one) => ledger.settle(one, textWork(1)), {
          concurrency: "unbounded",
        }),
        { startImmediately: true },
      )
    const release = yield* Deferred.make<void>()
    const holdsTheDatabase = yield* Effect.forkChild(sql.withTransaction(Deferred.await(release)), {
      startImmediately: true,
    })
    // The last one of these writes the full queue, which the others fill again.
    const first = yield* settle(0, full + 1)
    const second = yield* settle(full + 1, 2 * full + 1)
    yield* Deferred.succeed(release, undefined)
    yield* Fiber.join(holdsTheDatabase)
    for (const fiber of [first, second]) yield* Fiber.join(fiber)
    yield* ledger.flush
    expect(yield* receipts).toEqual({ n: 2 * full + 1, sum: 2 * full + 1 })
  }).pipe(Effect.scoped, Effect.provide(memory)),
)

it.effect("counts what is settled while a batch is being written", () =>
  Effect.gen(function* () {
    const ledger = yield* UsageLedger
    const sql = yield* SqlClient.SqlClient
    const user = yield* member("acme", { creditsMicroDollars: 100 })
    const work = Effect.flatMap(ledger.reserve(user, 30), (held) => ledger.settle(held, textWork(30)))
    yield* work
    const release = yield* Deferred.make<void>()
    const holdsTheDatabase = yield* Effect.forkChild(sql.withTransaction(Deferred.await(release)), {
      startImmediately: true,
    })
    const flushing = yield* Effect.forkChild(ledger.flush, { startImmediately: true })
    yield* work
    expect(flushing.pollUnsafe()).toBeUndefined()
    yield* Deferred.succeed(release, undefined)
    yield* Fiber.join(flushing)
    yield* Fiber.join(holdsTheDatabase)
    expect(yield* receipts).toEqual({ n: 1, sum: 30 })
    expect(yield* Effect.flip(ledger.reserve(user, 41))).toEqual(new PaymentRequired())
    yield* ledger.reserve(user, 40)
  }).pipe(Effect.scoped, Effect.provide(memory)),
)

it.effect("keeps receipts while the database refuses them, and goes on when it no longer does", () =>
  Effect.gen(function* () {
    const ledger = yield* UsageLedger
    const sql = yield* SqlClient.SqlClient
    const user = yield* member("acme", { creditsMicroDollars: 1_000_000 })
    const work = Effect.flatMap(ledger.reserve(user, 1), (held) => ledger.settle(held, textWork(1)))
    // Receipts can be written, balances can't: a batch is whole or not at all.
    yield* sql`CREATE TRIGGER stuck BEFORE UPDATE ON orgs BEGIN SELECT RAISE(ABORT, 'stuck'); END`
    yield* work
    yield* TestClock.adjust(20)
    expect(yield* Effect.flip(ledger.flush)).toMatchObject({ _tag: "StoreUnavailable" })
    yield* work
    expect(yield* receipts).toEqual({ n: 0, sum: 0 })
    yield* sql`DROP TRIGGER stuck`
    yield* TestClock.adjust("2 seconds")
    expect(yield* receipts).toEqual({ n: 2, sum: 2 })
    expect(yield* creditsOf(user)).toBe(999_998)
  }).pipe(Effect.scoped, Effect.provide(memory)),
)
