// The address a request comes from, behind the proxies this node trusts. Called by the auth service and the router.
import { Context, Effect, Option } from "effect"
import type { HttpServerRequest } from "effect/http"
import { clientAddress, type IsTrusted } from "#domain/access/ClientAddress.ts"

/** Whose word about a caller is taken; nobody's unless an operator says so. */
export const TrustedProxies = Context.Reference<IsTrusted>("edgewise/api/TrustedProxies", {
  defaultValue: () => () => false,
})

/** The address that the connection itself shows; empty where the client is gone already. */
export const peerAddress = (request: HttpServerRequest.HttpServerRequest): string =>
  Option.getOrElse(request.remoteAddress, () => "")

export const callerAddress = (request: HttpServerRequest.HttpServerRequest): Effect.Effect<string> =>
  Effect.map(TrustedProxies, (isTrusted) =>
    clientAddress(peerAddress(request), request.headers["x-forwarded-for"], isTrusted),
  )
