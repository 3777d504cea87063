// The address a request comes from, behind the proxies this node trusts.
import { Context, Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { clientAddress, type IsTrusted, trustNone } from "#domain/access/ClientAddress.ts"

/** The proxies whose forwarded addresses are believed; none by default. */
export const TrustedProxies = Context.Reference<IsTrusted>("edgewise/api/TrustedProxies", {
  defaultValue: () => trustNone,
})

/** The address of the connection itself; empty if the client has disconnected. */
export const peerAddress = (request: HttpServerRequest.HttpServerRequest): string =>
  Option.getOrElse(request.remoteAddress, () => "")

export const callerAddress = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<string> =>
  Effect.map(TrustedProxies, (isTrusted) =>
    clientAddress(peerAddress(request), request.headers["x-forwarded-for"], isTrusted),
  )
