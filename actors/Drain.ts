// The admission switch of the whole node: open until the node is told to stop, then closed for good.
// Services check it before they take new work; stopping the node closes it and waits until the work in flight is done.

import { Context, Deferred, Effect, Layer } from "effect"
import { Draining } from "#domain/wire/Errors.ts"

export class Drain extends Context.Service<
  Drain,
  {
    /** Runs work that draining must wait for; refused once the switch is closed. */
    readonly admit: <A, E, R>(work: Effect.Effect<A, E, R>) => Effect.Effect<A, E | Draining, R>
    readonly isClosed: () => boolean
    /** Completes when the switch is closed: for work that would go on for as long as its client likes. */
    readonly closing: Effect.Effect<void>
    readonly inFlight: () => number
    /** Closes the switch and completes when nothing is in flight any more. */
    readonly close: Effect.Effect<void>
  }
>()("edgewise/actors/Drain") {
  static readonly layer = Layer.sync(Drain, () => {
    let closed = false
    let inFlight = 0
    const idle = Deferred.makeUnsafe<void>()
    const closing = Deferred.makeUnsafe<void>()
    const settle = () => {
      if (closed && inFlight === 0) Deferred.doneUnsafe(idle, Effect.void)
    }
    const leave = Effect.sync(() => {
      inFlight--
      settle()
    })
    return Drain.of({
      admit: <A, E, R>(work: Effect.Effect<A, E, R>) =>
        Effect.suspend((): Effect.Effect<A, E | Draining, R> => {
          if (closed) return Effect.fail(new Draining())
          inFlight++
          return Effect.ensuring(work, leave)
        }),
      isClosed: () => closed,
      closing: Deferred.await(closing),
      inFlight: () => inFlight,
      close: Effect.suspend(() => {
        closed = true
        Deferred.doneUnsafe(closing, Effect.void)
        settle()
        return Deferred.await(idle)
      }),
    })
  })
}
