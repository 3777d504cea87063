// What a live session costs: one receipt, or, when it is long, one for each five minutes, which together are the same.
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import { TestClock } from "effect/testing"
import * as fc from "fast-check"
import { payFor } from "#api/live/LiveAdmission.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { costOf } from "#domain/models/Money.ts"
import { audioUsage } from "#domain/models/Usage.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { sqliteStoreLayer } from "#store/Store.ts"
import { runs } from "../../support/groups/Runs.ts"

const entry = { id: "listener", price: { perMinute: 4_001 } } as unknown as ModelEntry
const rateHz = 16_000
const minute = 60 * rateHz

/** A session of a new organization, without a socket. */
const session = Effect.fnUntraced(function* (creditsMicroDollars: number) {
  const accounts = yield* Accounts
  const ledger = yield* UsageLedger
  const org = "acme"
  yield* accounts.createOrg({ name: org, creditsMicroDollars })
  const { apiKey } = yield* accounts.createKey({ org })
  const caller = yield* accounts.authenticate(apiKey)
  const heard = { samples: 0, covered: 0, failed: false }
  const scope = yield* Scope.make()
  const { more } = yield* Scope.provide(
    payFor(
      caller,
      entry,
      () => (heard.failed ? heard.covered : heard.samples),
      () => heard.covered,
    ),
    scope,
  )
  const receipts = Effect.map(ledger.receipts(caller.orgId, 0, 100), (all) =>
    all.map(({ audioMs, microDollars }) => ({ audioMs, microDollars })).toReversed(),
  )
  /** What is left of the credits. */
  const rest = Effect.andThen(
    ledger.flush,
    Effect.map(accounts.showOrg(org), ({ creditsMicroDollars: left }) => left),
  )
  return { heard, more, receipts, rest, ledger, caller, end: Scope.close(scope, Exit.void) }
})

const on = <A, E>(test: Effect.Effect<A, E, Accounts | UsageLedger>) =>
  Effect.provide(test, sqliteStoreLayer(":memory:"))

const price = (samples: number) => costOf(entry.price, audioUsage("transcription", samples, rateHz))

it.effect("is one receipt below five minutes", () =>
  on(
    Effect.gen(function* () {
      const { end, heard, receipts } = yield* session(1_000_000)
      Object.assign(heard, { samples: minute, covered: minute })
      yield* TestClock.adjust("299 seconds")
      expect(yield* receipts).toEqual([])
      yield* end
      expect(yield* receipts).toEqual([{ audioMs: 60_000, microDollars: price(minute) }])
    }),
  ),
)

it.effect(
  "is charged every five minutes for the audio that captions cover, and at its end for the rest",
  () =>
    on(
      Effect.gen(function* () {
        const { end, heard, more, receipts, rest } = yield* session(1_000_000)
        yield* more
        yield* more
        Object.assign(heard, { samples: 4 * minute + 7, covered: 4 * minute + 1 })
        yield* TestClock.adjust("5 minutes")
        expect(yield* receipts).toEqual([{ audioMs: 240_001, microDollars: price(4 * minute + 1) }])
        // Nothing new, nothing to charge.
        yield* TestClock.adjust("5 minutes")
        expect((yield* receipts).length).toBe(1)
        yield* more
        Object.assign(heard, { samples: 7 * minute + 5, covered: 6 * minute })
        yield* TestClock.adjust("5 minutes")
        expect((yield* receipts).length).toBe(2)
        yield* end
        const all = yield* receipts
        expect(all.length).toBe(3)
        expect(all.reduce((sum, { microDollars }) => sum + microDollars, 0)).toBe(price(7 * minute + 5))
        expect(all.reduce((sum, { audioMs }) => sum + audioMs, 0)).toBe(420_001)
        expect(yield* rest).toBe(1_000_000 - price(7 * minute + 5))
      }),
    ),
)

it.effect("that fails after a part costs no more than what captions covered", () =>
  on(
    Effect.gen(function* () {
      const { end, heard, receipts } = yield* session(1_000_000)
      Object.assign(heard, { samples: 2 * minute, covered: minute })
      yield* TestClock.adjust("5 minutes")
      heard.failed = true
      yield* end
      expect(yield* receipts).toEqual([{ audioMs: 60_000, microDollars: price(minute) }])
    }),
  ),
)

it.effect("whose organization has no money for a part beside what is reserved is charged at its end", () =>
  on(
    Effect.gen(function* () {
      const { caller, end, heard, ledger, receipts, rest } = yield* session(price(2 * minute))
      Object.assign(heard, { samples: 2 * minute, covered: minute })
      yield* TestClock.adjust("5 minutes")
      expect(yield* receipts).toEqual([])
      // The reservation stands: nothing else can spend that money.
      const other = yield* Effect.flip(Effect.scoped(ledger.reserve(caller, 1)))
      expect(other._tag).toBe("PaymentRequired")
      yield* end
      expect(yield* rest).toBe(0)
      expect((yield* receipts).length).toBe(1)
    }),
  ),
)

it("parts cost together what the whole costs, and however it ends", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.integer({ min: 0, max: 2 * minute }), fc.integer({ min: 0, max: 100 })), {
        maxLength: 7,
      }),
      fc.boolean(),
      (steps, failed) =>
        Effect.runPromise(
          Effect.gen(function* () {
            const { end, heard, more, receipts } = yield* session(1_000_000)
            for (const [samples, percent] of steps) {
              yield* more
              heard.samples += samples
              heard.covered = Math.max(heard.covered, Math.floor((heard.samples * percent) / 100))
              yield* TestClock.adjust("5 minutes")
            }
            heard.failed = failed
            yield* end
            const sum = (yield* receipts).reduce((all, { microDollars }) => all + microDollars, 0)
            expect(sum).toBe(price(failed ? heard.covered : heard.samples))
          }).pipe(on, Effect.provide(TestClock.layer())),
        ),
    ),
    { numRuns: runs(4, 60) },
  ))
