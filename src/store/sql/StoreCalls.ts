// Calls between the nodes of a shared store: short texts that all of them get at once, with PostgreSQL's NOTIFY. A call that is
// lost, because a connection broke, is not repeated: it only saves time.
import { Context, Duration, Effect, Layer } from "effect"
import postgres from "postgres"
import type { DatabaseHosts } from "./DatabaseUrl.ts"
import { oneSocket } from "./PostgresSocket.ts"

/** Name of the channel. It belongs to the database, not to the schema: a node ignores what it does not know. */
export const callChannel = "edgewise_leases"

/** Delay before a lost connection is replaced. A guess. */
const retryAfter = Duration.millis(500)
const connectTimeoutSeconds = 5

type Listener = (call: string) => void

/** Has `listener` called with each call until the scope closes. Does nothing where no store is shared. */
export const StoreCalls = Context.Reference<{ readonly listen: (listener: Listener) => () => void }>(
  "edgewise/store/StoreCalls",
  { defaultValue: () => ({ listen: () => () => {} }) },
)

/** Listens over a connection of its own, for as long as the scope is open. */
export const storeCalls = (hosts: DatabaseHosts): Layer.Layer<never> =>
  Layer.effect(
    StoreCalls,
    Effect.gen(function* () {
      const listeners = new Set<Listener>()
      /** Completes when the connection has ended. */
      const connection = Effect.callback<void>((resume) => {
        const { destroy, open } = oneSocket()
        const client = postgres(hosts.url, {
          max: 1,
          connect_timeout: connectTimeoutSeconds,
          idle_timeout: undefined,
          max_lifetime: null,
          fetch_types: false,
          onnotice: () => {},
          onclose: () => over(),
          connection: { application_name: "edgewise calls" },
          // Options of the package that its types leave out. `sql.listen` is not used: it goes on connecting after `end`.
          ...{
            socket: open,
            onnotify: (_channel: string, call: string) => listeners.forEach((listener) => listener(call)),
          },
        })
        const end = () => {
          destroy()
          return client.end({ timeout: 0 }).catch(() => {})
        }
        const over = () => {
          void end()
          resume(Effect.void)
        }
        client.unsafe(`LISTEN ${callChannel}`).catch(over)
        return Effect.promise(end)
      })
      yield* Effect.forkScoped(Effect.forever(Effect.andThen(connection, Effect.sleep(retryAfter))))
      return {
        listen: (listener: Listener) => {
          listeners.add(listener)
          return () => void listeners.delete(listener)
        },
      }
    }),
  )
