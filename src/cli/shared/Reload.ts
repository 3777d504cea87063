// Reloads what a running node reads again on SIGHUP. Parts of the node register with `onReload`.
import { closeSync, openSync } from "node:fs"
import { Context, Effect, Layer, type Scope, Semaphore } from "effect"

interface Subscriber {
  readonly name: string
  readonly reload: Effect.Effect<void>
}

export class Reload extends Context.Service<
  Reload,
  {
    /** Runs `reload` at every reload, until the scope closes. The log line names `name` if it dies. */
    readonly onReload: (name: string, reload: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
    /** Runs all registered reloads in the order of registration, never two at once. */
    readonly reload: Effect.Effect<void>
  }
>()("edgewise/cli/Reload") {
  /** Reloads only when `reload` runs; `reloadOnHangup` adds the signal. */
  static readonly layer = Layer.effect(
    Reload,
    Effect.gen(function* () {
      const subscribers = new Set<Subscriber>()
      const one = yield* Semaphore.make(1)
      const run = ({ name, reload }: Subscriber) =>
        Effect.catchCause(reload, (cause) =>
          Effect.logError(`reload of ${name} failed`).pipe(Effect.annotateLogs({ cause: String(cause) })),
        )
      return Reload.of({
        onReload: (name, reload) =>
          Effect.asVoid(
            Effect.acquireRelease(
              Effect.sync(() => {
                const subscriber = { name, reload }
                subscribers.add(subscriber)
                return subscriber
              }),
              (subscriber) => Effect.sync(() => subscribers.delete(subscriber)),
            ),
          ),
        reload: one.withPermits(1)(
          Effect.suspend(() => Effect.forEach([...subscribers], run, { discard: true })),
        ),
      })
    }),
  )
}

/** True if this process was started from a terminal that has been closed, which also sends SIGHUP. */
const terminalWasClosed = (): boolean => {
  if (process.platform === "win32" || !(process.stdin.isTTY || process.stdout.isTTY)) return false
  try {
    closeSync(openSync("/dev/tty", "r+"))
    return false
  } catch {
    return true
  }
}

/**
 * Reloads at every SIGHUP, but stops the node like SIGTERM if its terminal was closed. Signals during a reload lead to
 * one more reload.
 */
export const reloadOnHangup = Effect.gen(function* () {
  const { reload } = yield* Reload
  let wake: () => void = () => {}
  let asked = false
  let stopping = false
  const next = Effect.callback<void>((resume) => {
    wake = () => {
      asked = false
      wake = () => {}
      resume(Effect.void)
    }
    if (asked) wake()
  })
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      const onSignal = () => {
        if (stopping) return
        stopping = terminalWasClosed()
        if (stopping) return void process.kill(process.pid, "SIGTERM")
        asked = true
        wake()
      }
      process.on("SIGHUP", onSignal)
      return onSignal
    }),
    (onSignal) => Effect.sync(() => process.off("SIGHUP", onSignal)),
  )
  yield* Effect.forkScoped(
    Effect.forever(next.pipe(Effect.andThen(Effect.logInfo("reloading on SIGHUP")), Effect.andThen(reload))),
  )
})
