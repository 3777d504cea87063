// The stored answers of idempotent requests: the first one stays for a day, the store is bounded, and what a
// process left half written is no answer.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import {
  AnswerBounds,
  type AnswerId,
  IdempotencyStore,
  type StoredAnswer,
} from "#store/idempotency/IdempotencyStore.ts"
import { defaultRetention, Retention } from "#store/sql/Retention.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { type Dialect, eachDialect } from "../Dialects.ts"

const bytes = (size: number, fill = 1) => new Uint8Array(size).fill(fill)
const id = (name: string, orgId = "org"): AnswerId => ({ id: name, orgId, userId: `${orgId}_user` })
const answer = (size: number, fill = 1): StoredAnswer => ({
  digest: `digest-${fill}`,
  status: 200,
  headers: { "content-type": "application/json" },
  receiptId: "rcpt_1",
  body: bytes(size, fill),
})

const bounds = (change: Partial<AnswerBounds>) =>
  Effect.provideService(AnswerBounds, {
    answerBytes: 1_000_000,
    orgAnswers: 1_000,
    orgBytes: 10_000_000,
    allAnswers: 10_000,
    allBytes: 100_000_000,
    ...change,
  })

/** With a clock of its own that is independent of the event loop. */
const storeOver =
  (fresh: Dialect["fresh"]) =>
  <A, E>(
    effect: Effect.Effect<A, E, IdempotencyStore | SqlClient.SqlClient>,
    change: Partial<AnswerBounds> = {},
    retention = defaultRetention,
  ) =>
    effect.pipe(
      Effect.provide(fresh),
      Effect.provideService(Retention, retention),
      bounds(change),
      Effect.scoped,
      Effect.provide(TestClock.layer()),
      Effect.runPromise,
    )

/** The parts of a body are separated by sleeps of zero length, for which this clock must be advanced. */
const turning = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const clock = yield* Effect.forkChild(
      Effect.forever(Effect.andThen(Effect.yieldNow, TestClock.adjust(0))),
    )
    void clock
    return yield* effect
  })

eachDialect(({ fresh, name }) => {
  const store = storeOver(fresh)
  describe("an answer", () => {
    it("is kept whole, whatever its size, and the first one stays", () =>
      store(
        turning(
          Effect.gen(function* () {
            const answers = yield* IdempotencyStore
            for (const size of [0, 1, 262_143, 262_144, 262_145, 700_000]) {
              const one = id(`of-${size}`)
              expect(yield* answers.has(one)).toBe(false)
              expect(yield* answers.find(one)).toBeUndefined()
              yield* answers.keep(one, answer(size, 7))
              yield* answers.keep(one, answer(10, 9))
              expect(yield* answers.has(one)).toBe(true)
              const found = (yield* answers.find(one))!
              expect({ ...found, body: undefined }).toEqual({ ...answer(size, 7), body: undefined })
              expect(found.body?.length).toBe(size)
              expect(found.body?.every((byte) => byte === 7)).toBe(true)
            }
          }),
        ),
      ))

    it("that is too large is remembered as one that is not kept", () =>
      store(
        Effect.gen(function* () {
          const answers = yield* IdempotencyStore
          yield* answers.keep(id("large"), answer(1_001))
          expect(yield* answers.find(id("large"))).toMatchObject({ digest: "digest-1", body: undefined })
          expect(yield* answers.held).toEqual({ answers: 1, bytes: 0 })
        }),
        { answerBytes: 1_000 },
      ))

    it("ends after a day, or as long as is set, to the millisecond, purged or not", () => {
      expect(defaultRetention.answerMs).toBe(24 * 60 * 60_000)
      // A minute: in a day of this clock the other workers of a shared store would ask the database ten thousands of times.
      const answerMs = 60_000
      return store(
        Effect.gen(function* () {
          const answers = yield* IdempotencyStore
          yield* answers.keep(id("a"), answer(10))
          yield* TestClock.adjust(answerMs - 1)
          expect(yield* answers.has(id("a"))).toBe(true)
          yield* answers.keep(id("b"), answer(10))
          yield* TestClock.adjust(1)
          expect(yield* answers.has(id("a"))).toBe(false)
          expect(yield* answers.find(id("a"))).toBeUndefined()
          // The next request with the key is executed again, and its answer is stored.
          yield* answers.keep(id("a"), answer(20, 2))
          expect((yield* answers.find(id("a")))?.body?.length).toBe(20)
          expect(yield* answers.held).toEqual({ answers: 2, bytes: 30 })
          yield* TestClock.adjust(answerMs - 1)
          yield* answers.purge
          expect(yield* answers.held).toEqual({ answers: 1, bytes: 20 })
        }),
        {},
        { ...defaultRetention, answerMs },
      )
    })

    it("that was never finished is none, and makes place for one that is", () =>
      store(
        Effect.gen(function* () {
          const answers = yield* IdempotencyStore
          const sql = yield* SqlClient.SqlClient
          yield* answers.keep(id("a"), answer(10))
          yield* sql`UPDATE answers SET complete = 0`
          expect(yield* answers.find(id("a"))).toBeUndefined()
          yield* answers.keep(id("a"), answer(30, 3))
          expect((yield* answers.find(id("a")))?.body?.length).toBe(30)
          expect(yield* answers.held).toEqual({ answers: 1, bytes: 30 })
          expect(yield* sql`SELECT COUNT(*) AS n FROM answer_parts`).toEqual([{ n: 1 }])
        }),
      ))
  })

  describe("all answers together", () => {
    interface Kept {
      readonly org: string
      readonly size: number
    }
    const kept = fc.array(
      fc.record({ org: fc.constantFrom("a", "b", "c"), size: fc.integer({ min: 0, max: 120 }) }),
      { maxLength: 60, size: "max" },
    )

    /**
     * The reference: drop the oldest of the organization, then the oldest of the organization with the largest share of
     * the table, until both bounds hold.
     */
    const modelOf = (
      all: ReadonlyArray<Kept>,
      limits: AnswerBounds,
    ): ReadonlyArray<Kept & { name: string }> => {
      let held: Array<Kept & { name: string }> = []
      const over = (some: ReadonlyArray<Kept>, answers: number, sizes: number) =>
        some.length > answers || some.reduce((sum, { size }) => sum + size, 0) > sizes
      for (const [index, each] of all.entries()) {
        held.push({ ...each, name: `answer-${index}` })
        const own = () => held.filter(({ org }) => org === each.org)
        while (over(own(), limits.orgAnswers, limits.orgBytes)) {
          const oldest = own()[0]
          held = held.filter((one) => one !== oldest)
        }
        const share = (name: string): number => {
          const some = held.filter(({ org }) => org === name)
          const bytes = some.reduce((sum, { size }) => sum + size, 0)
          return Math.max(some.length / limits.allAnswers, bytes / limits.allBytes)
        }
        while (over(held, limits.allAnswers, limits.allBytes)) {
          const [largest] = ["a", "b", "c"].sort(
            (one, other) => share(other) - share(one) || (one < other ? -1 : 1),
          )
          const oldest = held.find(({ org }) => org === largest)
          held = held.filter((one) => one !== oldest)
        }
      }
      return held
    }

    // The rule is the same SQL on both; a case is some hundred statements.
    it("stay within their bounds, and the newest stay", name === "Postgres" ? inLong : {}, () =>
      fc.assert(
        fc.asyncProperty(kept, async (all) => {
          const limits = {
            answerBytes: 1_000,
            orgAnswers: 6,
            orgBytes: 300,
            allAnswers: 12,
            allBytes: 500,
          }
          await store(
            Effect.gen(function* () {
              const answers = yield* IdempotencyStore
              for (const [index, { org, size }] of all.entries()) {
                yield* TestClock.adjust(1)
                yield* answers.keep(id(`answer-${index}`, org), answer(size))
              }
              const expected = modelOf(all, limits)
              for (const [index, { org }] of all.entries()) {
                const name = `answer-${index}`
                const there = expected.some((one) => one.name === name)
                expect([name, yield* answers.has(id(name, org))]).toEqual([name, there])
              }
              const bytesHeld = expected.reduce((sum, { size }) => sum + size, 0)
              expect(yield* answers.held).toEqual({ answers: expected.length, bytes: bytesHeld })
            }),
            limits,
          )
        }),
        { numRuns: name === "SQLite" ? 40 : 8 },
      ),
    )
  })
})
