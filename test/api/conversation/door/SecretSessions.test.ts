// The table of client secrets in use: places, who is replaced, and the sum of charges.
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { SecretSessions, silentMs } from "#api/conversation/door/SecretSessions.ts"
import type { SessionLimits } from "#domain/conversation/ClientSecretTerms.ts"
import { Unauthorized } from "#domain/wire/Errors.ts"
import { ClientSecrets } from "#store/accounts/ClientSecrets.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"

/** A store that keeps only sums; `isDown` makes it fail. */
class Sums {
  readonly of = new Map<string, number>()
  isDown = false

  readonly layer = Layer.mock(ClientSecrets, {
    spend: (id, microDollars) =>
      Effect.suspend(() => {
        if (this.isDown) return Effect.fail(new Error("down") as never)
        const sum = (this.of.get(id) ?? 0) + microDollars
        this.of.set(id, sum)
        return Effect.succeed(sum)
      }),
  })
}

const withTable = (sums = new Sums()) => SecretSessions.layer.pipe(Layer.provide(sums.layer))

const enter = (limits: SessionLimits, spentMicroDollars = 0) =>
  Effect.gen(function* () {
    const scope = yield* Scope.make()
    const session = yield* Scope.provide(
      (yield* SecretSessions).enter({ id: "a", spentMicroDollars }, limits),
      scope,
    )
    return { ...session, leave: Scope.close(scope, Exit.void) }
  })

const settle = (session: Effect.Success<ReturnType<typeof enter>>, microDollars: number) =>
  Effect.gen(function* () {
    let charged = 0
    const ledger = session.spending!.ledger(
      UsageLedger.of({
        settle: (_: unknown, settlement: { readonly microDollars: number }) => {
          charged = settlement.microDollars
          return Effect.succeed("receipt")
        },
      } as never),
    )
    yield* ledger.settle({} as never, { microDollars } as never)
    yield* Effect.yieldNow
    return charged
  })

it.effect("a session beyond max_sessions waits until one was silent, and takes its place", () =>
  Effect.gen(function* () {
    const first = yield* enter({ max_sessions: 2 })
    yield* TestClock.adjust(1)
    const second = yield* enter({ max_sessions: 2 })
    expect(yield* Effect.flip(enter({ max_sessions: 2 }))).toMatchObject({
      _tag: "RateLimited",
      retryAfterMs: silentMs - 1,
    })
    yield* TestClock.adjust(silentMs - 2)
    first.heard()
    expect(yield* Effect.flip(enter({ max_sessions: 2 }))).toMatchObject({ retryAfterMs: 2 })
    const watch = yield* Effect.forkChild(second.replaced, { startImmediately: true })
    yield* TestClock.adjust(2)
    const third = yield* enter({ max_sessions: 2 })
    yield* Fiber.join(watch)
    // The end of the one that was replaced frees nothing more.
    yield* second.leave
    expect(yield* Effect.flip(enter({ max_sessions: 2 }))).toMatchObject({ _tag: "RateLimited" })
    yield* Effect.all([first.leave, third.leave])
    expect((yield* SecretSessions).size()).toBe(0)
  }).pipe(Effect.provide(withTable())),
)

it.effect("sessions share what their secret may cost, one after the other and at the same time", () => {
  const sums = new Sums()
  return Effect.gen(function* () {
    const limits = { max_cost_usd: 0.0001 }
    const one = yield* enter(limits)
    const two = yield* enter(limits)
    expect(yield* settle(one, 60)).toBe(60)
    expect(two.spending!.isReached).toBe(false)
    yield* one.leave
    yield* two.leave
    expect((yield* SecretSessions).size()).toBe(0)
    const three = yield* enter(limits, sums.of.get("a"))
    expect(yield* settle(three, 60)).toBe(40)
    expect(three.spending!.isReached).toBe(true)
    expect(yield* Effect.flip(enter(limits, 0))).toEqual(new Unauthorized({ reason: "spent-secret" }))
    yield* three.leave
    expect(yield* Effect.flip(enter(limits, sums.of.get("a")))).toMatchObject({ _tag: "Unauthorized" })
    expect((yield* SecretSessions).size()).toBe(0)
  }).pipe(Effect.provide(withTable(sums)))
})

it.effect("what another node has charged counts as soon as the store tells", () => {
  const sums = new Sums()
  return Effect.gen(function* () {
    const limits = { max_cost_usd: 0.0001 }
    const one = yield* enter(limits)
    sums.of.set("a", 70)
    // This charge does not know of it yet; the next one does.
    expect(yield* settle(one, 20)).toBe(20)
    expect(yield* settle(one, 20)).toBe(10)
    expect(one.spending!.isReached).toBe(true)
    yield* one.leave
  }).pipe(Effect.provide(withTable(sums)))
})

it.effect("a charge that the store does not take counts, and is written once the store is back", () => {
  const sums = new Sums()
  return Effect.gen(function* () {
    const limits = { max_cost_usd: 0.0001 }
    sums.isDown = true
    const one = yield* enter(limits)
    expect(yield* settle(one, 60)).toBe(60)
    yield* one.leave
    expect((yield* SecretSessions).size()).toBe(1)
    const two = yield* enter(limits, 0)
    expect(yield* settle(two, 60)).toBe(40)
    yield* two.leave
    sums.isDown = false
    yield* TestClock.adjust("2 seconds")
    expect(sums.of.get("a")).toBe(100)
    expect((yield* SecretSessions).size()).toBe(0)
  }).pipe(Effect.provide(withTable(sums)))
})
