// The listeners and the credential of a process's roles, for printing them and for the drain. Each role adds itself
// when it listens. In one process the router also learns the edge's address here.
import { Context, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import type { Role } from "#config/settings/ListenerSettings.ts"
import { Listener } from "#transport/server/TransportServer.ts"
import type { FirstCredential } from "./FirstCredential.ts"

interface Listening {
  readonly role: Role
  readonly base: string
  readonly listener: Listener["Service"]
}

export class Started extends Context.Service<
  Started,
  {
    /** In the order in which they began to listen. */
    readonly listening: Array<Listening>
    /** Undefined without an edge in this process. */
    credential: FirstCredential | undefined
    /** Completes when the models that are loaded at the start have been, or could not be. */
    loads: Effect.Effect<void>
  }
>()("edgewise/cli/Started") {
  static readonly layer = Layer.sync(Started, () => ({
    listening: [],
    credential: undefined,
    loads: Effect.void,
  }))
}

/** To be run where the role's own listener is provided. */
export const announce = (role: Role) =>
  Effect.gen(function* () {
    const listener = yield* Listener
    const address = HttpServer.formatAddress((yield* HttpServer.HttpServer).address)
    const base = listener.secure ? address.replace(/^http:/, "https:") : address
    const { listening } = yield* Started
    listening.push({ role, base, listener })
  })
