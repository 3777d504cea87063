// SIGHUP, which tells a running node to read again what its operator has changed. Effects register here and run one after
// the other, in the order of their registration, at each signal. Signals that come meanwhile are one more run.
import { Context, Effect, Layer, Queue, type Scope } from "effect"

export class Hangup extends Context.Service<
  Hangup,
  {
    /** Runs `effect` at each SIGHUP until the scope closes. */
    readonly register: (effect: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
  }
>()("edgewise/cli/Hangup") {
  /** From its building on, SIGHUP no longer ends the process. */
  static readonly layer = Layer.effect(
    Hangup,
    Effect.gen(function* () {
      const registered = new Set<{ readonly effect: Effect.Effect<void> }>()
      const signals = yield* Queue.sliding<void>(1)
      const onSignal = () => void Queue.offerUnsafe(signals, undefined)
      yield* Effect.acquireRelease(
        Effect.sync(() => process.on("SIGHUP", onSignal)),
        () => Effect.sync(() => process.off("SIGHUP", onSignal)),
      )
      const run = Effect.gen(function* () {
        yield* Queue.take(signals)
        for (const { effect } of registered)
          yield* Effect.catchDefect(effect, (cause) => Effect.logError("SIGHUP", String(cause)))
      })
      yield* Effect.forkScoped(Effect.forever(run))
      return Hangup.of({
        register: (effect) =>
          Effect.acquireRelease(
            Effect.sync(() => {
              const one = { effect }
              registered.add(one)
              return one
            }),
            (one) => Effect.sync(() => registered.delete(one)),
          ),
      })
    }),
  )
}
