// What a running node reads again when its operator says so: on SIGHUP. Subscribers register with `onReload`.
import { closeSync, openSync } from "node:fs"
import { Context, Effect, Layer, type Scope, Semaphore } from "effect"

interface Subscriber {
  readonly name: string
  readonly reload: Effect.Effect<void>
}

export class Reload extends Context.Service<
  Reload,
  {
    /** Runs `reload` at every reload, until the scope closes. `name` stands in the log line if it dies. */
    readonly onReload: (name: string, reload: Effect.Effect<void>) => Effect.Effect<void, never, Scope.Scope>
    /** Runs every subscriber, in the order of registration and never two reloads at once. */
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

/** Whether this process was started from a terminal that is closed by now, which also sends SIGHUP. */
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
 * Reloads at every SIGHUP, but stops the node as SIGTERM does where its terminal was closed. Signals that arrive during a
 * reload lead to one more.
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
