// Who is calling: the bearer credential becomes a Principal, which handlers read as the service `Caller`.
// Every edge endpoint except /health passes here, over HTTP as middleware and over WebSocket by `identify`.
import { Context, Effect, Layer, Redacted } from "effect"
import type { HttpServerRequest } from "effect/http"
import { HttpApiMiddleware, HttpApiSecurity } from "effect/http-api"
import { type AuthUnavailable, type RateLimited, Unauthorized } from "#domain/Errors.ts"
import { Accounts, type Principal } from "#store/Accounts.ts"
import { errorResponse } from "./ErrorBody.ts"
import { RateLimit } from "./RateLimit.ts"

/** The authenticated caller of the current request. */
export class Caller extends Context.Service<Caller, Principal>()("edgewise/api/Caller") {}

/** The bearer scheme of an endpoint group; a failure is answered at once in the product's error form. */
export class Authentication extends HttpApiMiddleware.Service<Authentication, { provides: Caller }>()(
  "edgewise/api/Authentication",
  { security: { bearer: HttpApiSecurity.bearer } },
) {}

/** Session tokens (JWT), where an auth service issues them. */
export class SessionTokens extends Context.Service<
  SessionTokens,
  { readonly verify: (token: string) => Effect.Effect<Principal, Unauthorized | AuthUnavailable> }
>()("edgewise/api/SessionTokens") {
  /** A node that knows no issuer: a token can be told apart from nonsense, and trusted in no case. */
  static readonly none = Layer.succeed(SessionTokens, {
    verify: (token) =>
      Effect.fail(
        new Unauthorized({ reason: token.split(".").length < 3 ? "malformed-token" : "invalid-token" }),
      ),
  })
}

/** Longer credentials are nobody's: an API key has 36 characters, a session token some hundreds. */
const maxCredentialLength = 4_096

/** A credential's principal, however it came in. Counts against the user's rate limit when it is good. */
export const identify = (
  credential: string,
): Effect.Effect<
  Principal,
  Unauthorized | AuthUnavailable | RateLimited,
  Accounts | SessionTokens | RateLimit
> =>
  Effect.gen(function* () {
    const principal = yield* authenticate(credential)
    yield* (yield* RateLimit).admit(principal.userId)
    return principal
  })

const authenticate = (
  credential: string,
): Effect.Effect<Principal, Unauthorized | AuthUnavailable, Accounts | SessionTokens> => {
  if (credential === "") return Effect.fail(new Unauthorized({ reason: "missing" }))
  if (credential.startsWith("svc_") || credential.length > maxCredentialLength) {
    return Effect.flatMap(Accounts, (accounts) => accounts.authenticate(credential))
  }
  return Effect.flatMap(SessionTokens, (tokens) => tokens.verify(credential))
}

/** The credential of a request that a browser may have made: the `token` of the query, else the bearer header. */
export const credentialOf = (request: HttpServerRequest.HttpServerRequest, url: URL): string => {
  const token = url.searchParams.get("token")
  if (token !== null) return token
  const header = request.headers.authorization ?? ""
  return /^bearer /i.test(header) ? header.slice("bearer ".length).trim() : ""
}

export const AuthenticationLive: Layer.Layer<Authentication, never, Accounts | SessionTokens | RateLimit> =
  Layer.effect(
    Authentication,
    Effect.gen(function* () {
      const services = yield* Effect.context<Accounts | SessionTokens | RateLimit>()
      return Authentication.of({
        bearer: (handler, { credential }) =>
          identify(Redacted.value(credential)).pipe(
            Effect.provideContext(services),
            Effect.matchEffect({
              onFailure: (error) => Effect.succeed(errorResponse(error)),
              onSuccess: (principal) => Effect.provideService(handler, Caller, principal),
            }),
          ),
      })
    }),
  )
