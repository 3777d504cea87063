// The two addresses of a request: that of its connection, which may be a proxy's, and that of its client.
import { Context, Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { clientAddress, type IsTrusted, trustNone } from "#domain/access/ClientAddress.ts"

/** The proxies whose `X-Forwarded-For` is believed; none by default. */
export const TrustedProxies = Context.Reference<IsTrusted>("edgewise/api/TrustedProxies", {
  defaultValue: () => trustNone,
})

/** The address of the connection itself; empty if the client has disconnected. */
export const peerAddress = (request: HttpServerRequest.HttpServerRequest): string =>
  Option.getOrElse(request.remoteAddress, () => "")

/** The client's address: what the trusted proxies report, or the address of the connection if there are none. */
export const clientAddressOf = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<string> =>
  Effect.map(TrustedProxies, (isTrusted) =>
    clientAddress(peerAddress(request), request.headers["x-forwarded-for"], isTrusted),
  )
