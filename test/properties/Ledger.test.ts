// The ledger against a simple model of sums: for any order of reservations, settlements, cancellations, credits and
// flushes, it admits the same as the model, never goes below zero, and leaves the same balance in the database.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { textUsage } from "#domain/models/Usage.ts"
import { Accounts, type Principal } from "#store/accounts/Accounts.ts"
import { type Reservation, UsageLedger } from "#store/ledger/UsageLedger.ts"
import { sqliteStoreLayer } from "#store/Store.ts"
import { inLong } from "../support/groups/Runs.ts"

const orgs = ["prepaid", "other", "invoiced"] as const
type OrgName = (typeof orgs)[number]

type Step =
  | { readonly do: "reserve"; readonly org: OrgName; readonly amount: number }
  /** `which` chooses among the reservations made so far, closed ones included; `share` of the estimate is used. */
  | { readonly do: "settle"; readonly which: number; readonly share: number }
  | { readonly do: "cancel"; readonly which: number }
  /** By another process: in the database only, and then the time in which it must be noticed. */
  | { readonly do: "credit"; readonly org: OrgName; readonly amount: number }
  | { readonly do: "flush" }
  | { readonly do: "wait"; readonly ms: number }

const step: fc.Arbitrary<Step> = fc.oneof(
  {
    weight: 5,
    arbitrary: fc.record({
      do: fc.constant("reserve" as const),
      org: fc.constantFrom(...orgs),
      amount: fc.nat({ max: 40 }),
    }),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      do: fc.constant("settle" as const),
      which: fc.nat(),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("cancel" as const), which: fc.nat() }) },
  {
    weight: 1,
    arbitrary: fc.record({
      do: fc.constant("credit" as const),
      org: fc.constantFrom(...orgs),
      amount: fc.integer({ min: 1, max: 50 }),
    }),
  },
  { weight: 1, arbitrary: fc.record({ do: fc.constant("flush" as const) }) },
  {
    weight: 1,
    arbitrary: fc.record({ do: fc.constant("wait" as const), ms: fc.constantFrom(1, 19, 20, 3000) }),
  },
)

interface ModelOrg {
  credits: number
  reserved: number
  charged: number
  readonly paymentMethod: boolean
}

const admits = (org: ModelOrg, amount: number): boolean =>
  org.paymentMethod || (org.credits > 0 && org.credits - org.reserved >= amount)

const charge = (org: ModelOrg, amount: number): void => {
  org.charged += amount
  org.credits -= amount
}

/** What two processes add is one sum, so the model may add a credit at once; the ledger gets 5 s to notice. */
const run = Effect.fnUntraced(function* (steps: ReadonlyArray<Step>) {
  const accounts = yield* Accounts
  const ledger = yield* UsageLedger
  const sql = yield* SqlClient.SqlClient
  const model = new Map<OrgName, ModelOrg>()
  const users = new Map<OrgName, Principal>()
  for (const name of orgs) {
    const paymentMethod = name === "invoiced"
    yield* accounts.createOrg({ name, creditsMicroDollars: 100, paymentMethod })
    users.set(name, yield* accounts.authenticate((yield* accounts.createKey({ org: name })).apiKey))
    model.set(name, { credits: 100, reserved: 0, charged: 0, paymentMethod })
  }
  const made: Array<{ readonly org: ModelOrg; readonly held: Reservation; open: boolean }> = []

  for (const step of steps) {
    switch (step.do) {
      case "reserve": {
        const org = model.get(step.org)!
        const attempt = yield* Effect.exit(ledger.reserve(users.get(step.org)!, step.amount))
        expect(Exit.isSuccess(attempt)).toBe(admits(org, step.amount))
        if (Exit.isSuccess(attempt)) {
          org.reserved += step.amount
          made.push({ org, held: attempt.value, open: true })
        }
        break
      }
      case "settle":
      case "cancel": {
        const chosen = made[step.which % Math.max(1, made.length)]
        if (chosen === undefined) break
        const { org, held } = chosen
        const used = step.do === "settle" ? Math.floor(held.microDollars * step.share) : 0
        if (step.do === "cancel") yield* ledger.cancel(held)
        else yield* ledger.settle(held, { model: "m", usage: textUsage(1, 1), microDollars: used })
        if (chosen.open) {
          chosen.open = false
          org.reserved -= held.microDollars
          charge(org, used)
        }
        break
      }
      case "credit":
        yield* sql`UPDATE orgs SET credits_micro_dollars = credits_micro_dollars + ${step.amount}
          WHERE name = ${step.org}`
        model.get(step.org)!.credits += step.amount
        yield* TestClock.adjust("5 seconds")
        break
      case "flush":
        yield* ledger.flush
        break
      case "wait":
        yield* TestClock.adjust(step.ms)
    }
    // Only an invoiced organization may owe.
    for (const org of model.values()) expect(org.paymentMethod || org.credits >= 0).toBe(true)
    const below = yield* sql`SELECT name FROM orgs WHERE credits_micro_dollars < 0 AND payment_method = 0`
    expect(below).toEqual([])
  }

  yield* ledger.flush
  for (const [name, org] of model) {
    expect((yield* accounts.showOrg(name)).creditsMicroDollars).toBe(org.credits)
    const rows = yield* ledger.usage(users.get(name)!.orgId, 0)
    expect(rows.reduce((sum, row) => sum + row.microDollars, 0)).toBe(org.charged)
  }
})

describe("UsageLedger", () => {
  it("agrees with the arithmetic, step by step and at the end", inLong, () =>
    fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80, size: "max" }), (steps) =>
        Effect.runPromise(
          run(steps).pipe(
            Effect.scoped,
            Effect.provide(sqliteStoreLayer(":memory:")),
            Effect.provide(TestClock.layer()),
          ),
        ),
      ),
      { numRuns: 120 },
    ),
  )

  it("admits no more than the budget when everything happens at once", () =>
    fc.assert(
      fc.asyncProperty(
        fc.integer({ min: 1, max: 500 }),
        fc.array(fc.tuple(fc.integer({ min: 1, max: 60 }), fc.nat({ max: 3 })), {
          minLength: 1,
          maxLength: 60,
          size: "max",
        }),
        (credits, requests) =>
          Effect.gen(function* () {
            const accounts = yield* Accounts
            const ledger = yield* UsageLedger
            yield* accounts.createOrg({ name: "acme", creditsMicroDollars: credits })
            const user = yield* accounts.authenticate((yield* accounts.createKey({ org: "acme" })).apiKey)
            let spent = 0
            // Each request yields a few times between its steps, so that they interleave.
            const request = ([amount, pauses]: readonly [number, number]) =>
              Effect.gen(function* () {
                const held = yield* ledger.reserve(user, amount)
                for (let i = 0; i < pauses; i++) yield* Effect.yieldNow
                if (pauses === 3) return yield* ledger.cancel(held)
                yield* ledger.settle(held, { model: "m", usage: textUsage(1, 1), microDollars: amount })
                spent += amount
                if (pauses === 2) yield* ledger.flush
              }).pipe(Effect.scoped, Effect.ignore)
            yield* Effect.forEach(requests, request, { concurrency: "unbounded", discard: true })
            yield* ledger.flush
            expect(spent).toBeLessThanOrEqual(credits)
            expect((yield* accounts.showOrg("acme")).creditsMicroDollars).toBe(credits - spent)
            // Nothing stays reserved: what is left can be reserved to the last micro-dollar.
            if (spent < credits) yield* Effect.scoped(ledger.reserve(user, credits - spent))
          }).pipe(
            Effect.provide(sqliteStoreLayer(":memory:")),
            Effect.provide(TestClock.layer()),
            Effect.runPromise,
          ),
      ),
      { numRuns: 60 },
    ))
})
