// Reloads: every subscriber runs, in order, one reload at a time; one that fails is logged and stops nothing.
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Exit, Fiber, Logger, Scope } from "effect"
import { Reload, reloadOnHangup } from "#cli/shared/Reload.ts"

const quiet = Logger.layer([])

it.effect("runs all subscribers in order, the ones after a failure too, until their scope closes", () =>
  Effect.gen(function* () {
    const { onReload, reload } = yield* Reload
    const ran: Array<string> = []
    const scope = yield* Scope.make()
    const note = (name: string) => Effect.sync(() => void ran.push(name))
    yield* onReload("a", note("a"))
    yield* onReload("b", Effect.andThen(note("b"), Effect.die("broken")))
    yield* onReload("c", note("c")).pipe(Effect.provideService(Scope.Scope, scope))
    yield* reload
    expect(ran).toEqual(["a", "b", "c"])
    yield* Scope.close(scope, Exit.void)
    yield* reload
    expect(ran).toEqual(["a", "b", "c", "a", "b"])
  }).pipe(Effect.provide([Reload.layer, quiet])),
)

it.effect("never runs two at once", () =>
  Effect.gen(function* () {
    const { onReload, reload } = yield* Reload
    const proceed = yield* Deferred.make<void>()
    let running = 0
    let most = 0
    yield* onReload(
      "slow",
      Effect.gen(function* () {
        most = Math.max(most, ++running)
        yield* Deferred.await(proceed)
        running--
      }),
    )
    const both = yield* Effect.forkChild(Effect.all([reload, reload], { concurrency: 2 }))
    yield* Effect.yieldNow
    yield* Deferred.succeed(proceed, undefined)
    yield* Fiber.join(both)
    expect([most, running]).toEqual([1, 0])
  }).pipe(Effect.provide([Reload.layer, quiet])),
)

it.live("reloads at SIGHUP, and once more for any number of signals during a reload", () =>
  Effect.gen(function* () {
    const { onReload } = yield* Reload
    const begun = yield* Deferred.make<void>()
    const proceed = yield* Deferred.make<void>()
    const again = yield* Deferred.make<void>()
    let count = 0
    yield* onReload(
      "it",
      Effect.suspend(() => {
        count++
        return count === 1
          ? Effect.andThen(Deferred.succeed(begun, undefined), Deferred.await(proceed))
          : Effect.asVoid(Deferred.succeed(again, undefined))
      }),
    )
    yield* reloadOnHangup
    // Emitted, not sent: a signal would reach the test runner.
    process.emit("SIGHUP", "SIGHUP")
    yield* Deferred.await(begun)
    for (let i = 0; i < 100; i++) process.emit("SIGHUP", "SIGHUP")
    yield* Deferred.succeed(proceed, undefined)
    yield* Deferred.await(again)
    yield* Effect.sleep("20 millis")
    expect(count).toBe(2)
  }).pipe(Effect.provide([Reload.layer, quiet])),
)
