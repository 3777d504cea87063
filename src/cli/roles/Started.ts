// What the roles of a process have started, for `serve` to tell its operator about and to wind down. Each role adds itself
// once it listens; in one process the router also learns here where the edge is.
import { Context, Effect, Layer } from "effect"
import { HttpServer } from "effect/http"
import type { Role } from "#config/Config.ts"
import { Listener } from "#transport/uws/UwsServer.ts"
import type { FirstCredential } from "./FirstCredential.ts"

export interface Listening {
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
  }
>()("edgewise/cli/Started") {
  static readonly layer = Layer.sync(Started, () => ({ listening: [], credential: undefined }))
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
