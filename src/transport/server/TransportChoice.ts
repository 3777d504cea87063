// Which HTTP library serves a listener, and why. With `auto` the native parser of uWebSockets.js reads bytes only of
// clients on the same machine and of proxies that the operator names: it is an old binary with memory faults
// (docs/security.md). Node's own server serves every other listener, and its TLS is used wherever a listener does TLS.
import { Effect } from "effect"
import { ServeError } from "effect/http/HttpServerError"
import { type IsTrusted, trustNone, trustsEveryAddress } from "#domain/access/ClientAddress.ts"
import { isLoopback } from "#domain/access/Loopback.ts"
import type { ListenAddress } from "../ListenAddress.ts"
import { loadUws } from "../uws/Uws.ts"

export type TransportChoice = "auto" | "uws" | "node"
type TransportName = "uws" | "node"

/** What the choice depends on. */
export interface ChoiceFacts extends Pick<ListenAddress, "host" | "tls"> {
  /** The setting. */
  readonly transport: TransportChoice
  readonly isTrusted: IsTrusted
}

export interface Transport {
  readonly name: TransportName
  /** Why this library, as the start prints it. */
  readonly reason: string
  /** True if only trusted proxies and loopback addresses may connect. All other connections are closed before a byte is read. */
  readonly proxiesOnly: boolean
}

const serves = (name: TransportName, reason: string, proxiesOnly = false): Transport => ({
  name,
  reason,
  proxiesOnly,
})

/** The library for a machine on which both can serve. */
export const preferredTransport = ({ host, isTrusted, tls, transport }: ChoiceFacts): Transport => {
  if (transport !== "auto") return serves(transport, `EDGEWISE_TRANSPORT=${transport}`)
  if (tls !== undefined) return serves("node", "this listener does TLS")
  if (isLoopback(host)) return serves("uws", `only this machine reaches ${host}`)
  if (isTrusted === trustNone) return serves("node", `other machines reach ${host}`)
  if (trustsEveryAddress(isTrusted)) return serves("node", "EDGEWISE_TRUSTED_PROXIES names every address")
  return serves("uws", "only EDGEWISE_TRUSTED_PROXIES and loopback addresses may connect", true)
}

/** Why uWebSockets.js cannot serve here, in one line. Undefined if it can. */
const uwsProblem: Effect.Effect<string | undefined> = Effect.promise(() =>
  loadUws().then(
    () => undefined,
    (cause: unknown) => (cause instanceof Error ? cause.message : String(cause)).split("\n")[0],
  ),
)

/**
 * The library that serves. Loads uWebSockets.js only if that is it. Fails with one line that says what to do if the
 * setting names uWebSockets.js and its binary does not load.
 */
export const chosenTransport = (
  facts: ChoiceFacts,
  problem: Effect.Effect<string | undefined> = uwsProblem,
): Effect.Effect<Transport, ServeError> => {
  const preferred = preferredTransport(facts)
  if (preferred.name === "node") return Effect.succeed(preferred)
  return Effect.flatMap(problem, (found) => {
    if (found === undefined) return Effect.succeed(preferred)
    if (facts.transport === "auto") return Effect.succeed(serves("node", found))
    const cause = new Error(`EDGEWISE_TRANSPORT is uws, but ${found}; set it to node or auto`)
    return Effect.fail(new ServeError({ cause }))
  })
}

const names: Readonly<Record<TransportName, string>> = {
  uws: "uWebSockets.js",
  node: "Node's own server and ws",
}

/** For example "uWebSockets.js: only this machine reaches 127.0.0.1". */
export const transportLine = ({ name, reason }: Transport): string => `${names[name]}: ${reason}`
