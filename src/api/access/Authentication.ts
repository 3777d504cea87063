// Authentication: the bearer credential becomes a Principal, which handlers read as the service `Caller`. Every edge
// endpoint except /health uses it, over HTTP as middleware and over WebSocket by `identify`.
import { Context, Effect, Layer } from "effect"
import { HttpServerRequest, type HttpServerResponse } from "effect/http"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import * as HttpApiSecurity from "effect/http-api/HttpApiSecurity"
import { looksLikeSecret } from "#domain/access/ClientSecret.ts"
import { looksLikeOperatorToken } from "#domain/access/OperatorToken.ts"
import { type AuthUnavailable, type RateLimited, Unauthorized } from "#domain/wire/Errors.ts"
import { errors } from "#http/Declared.ts"
import { errorResponse } from "#http/ErrorBody.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import { Caller } from "#services/Caller.ts"
import { Accounts, type Principal } from "#store/accounts/Accounts.ts"
import { AuthFailures } from "./AuthFailures.ts"
import { DevelopmentKeyCheck } from "./DevelopmentKey.ts"
import { CurrentOperatorToken } from "./OperatorToken.ts"
import { RateLimit } from "./RateLimit.ts"

/** The bearer scheme of an endpoint group; a failure is answered at once in the product's error form. */
export class Authentication extends HttpApiMiddleware.Service<Authentication, { provides: Caller }>()(
  "edgewise/api/Authentication",
  {
    security: { bearer: HttpApiSecurity.bearer },
    error: errors("Unauthorized", "AuthUnavailable", "RateLimited", "StoreDown"),
  },
) {}

/** Whether the endpoints of a group accept the operator token: those that cost nothing and belong to no organization. */
export const TakesOperatorToken = Context.Reference<boolean>("edgewise/api/TakesOperatorToken", {
  defaultValue: () => false,
})

/** Session tokens (JWT), where an auth service issues them. */
export class SessionTokens extends Context.Service<
  SessionTokens,
  { readonly verify: (token: string) => Effect.Effect<Principal, Unauthorized | AuthUnavailable> }
>()("edgewise/api/SessionTokens") {
  /** Sessions on a node without an issuer: a well-formed token is recognized as one, and always refused. */
  static readonly none = Layer.succeed(SessionTokens, {
    verify: (token) =>
      Effect.fail(
        new Unauthorized({ reason: token.split(".").length < 3 ? "malformed-token" : "invalid-token" }),
      ),
  })
}

/** No valid credential is longer: an API key has 36 characters, a session token some hundreds. */
const maxCredentialLength = 4_096

/** The services that identify a caller. */
type IdentityServices = Accounts | AuthFailures | RateLimit | SessionTokens

type Identified = Effect.Effect<
  Principal,
  Unauthorized | AuthUnavailable | RateLimited,
  HttpServerRequest.HttpServerRequest
>

/** `operators` of an endpoint that accepts the operator token. */
type Identify = (credential: string, operators: boolean) => Identified

/** Finds the principal of one credential. */
type FindPrincipal = Effect.Effect<
  Principal,
  Unauthorized | AuthUnavailable,
  HttpServerRequest.HttpServerRequest
>

const missing = Effect.fail(new Unauthorized({ reason: "missing" }))
const secretElsewhere = Effect.fail(new Unauthorized({ reason: "secret-elsewhere" }))
const operatorElsewhere = Effect.fail(new Unauthorized({ reason: "operator-elsewhere" }))

/** Counts failures and, against a rate, by default that of its user, a principal that was found. */
const makeAdmit = Effect.gen(function* () {
  const failures = yield* AuthFailures
  const limit = yield* RateLimit
  const developmentKeyCheck = yield* DevelopmentKeyCheck
  const byUser = (principal: Principal) => limit.admit(principal.userId)
  return (found: FindPrincipal, rate = byUser): Identified =>
    Effect.withFiber((fiber) => {
      const notes = fiber.getRef(CurrentRequest)
      const known = failures
        .guard(Effect.flatMap(found, developmentKeyCheck))
        .pipe(Effect.tapError(() => Effect.sync(() => notes.authenticated())))
      return Effect.flatMap(known, (principal) => {
        notes.authenticated()
        notes.identified = true
        return Effect.as(rate(principal), principal)
      })
    })
})

/** The principal of a credential that another service knows, under the same rules as an API key's but for the rate. */
export const identifyBy = (
  found: FindPrincipal,
  rate: (principal: Principal) => Effect.Effect<void, RateLimited>,
) => Effect.flatMap(makeAdmit, (admit) => admit(found, rate))

/** Services are looked up once and not on every request. */
const makeIdentify: Effect.Effect<Identify, never, IdentityServices> = Effect.gen(function* () {
  const accounts = yield* Accounts
  const tokens = yield* SessionTokens
  const admit = yield* makeAdmit
  const operatorToken = yield* CurrentOperatorToken
  const authenticate = (credential: string, operators: boolean): FindPrincipal => {
    if (credential === "") return missing
    if (looksLikeSecret(credential)) return secretElsewhere
    if (looksLikeOperatorToken(credential))
      return operators ? operatorToken.authenticate(credential) : operatorElsewhere
    return credential.startsWith("svc_") || credential.length > maxCredentialLength
      ? accounts.authenticate(credential)
      : tokens.verify(credential)
  }
  return (credential, operators) => admit(authenticate(credential, operators))
})

/**
 * The principal of a credential from any place. A valid one counts against the user's rate limit.
 *
 * @param operators whether the operator token is accepted
 */
export const identify = (
  credential: string,
  operators = false,
): Effect.Effect<
  Principal,
  Unauthorized | AuthUnavailable | RateLimited,
  IdentityServices | HttpServerRequest.HttpServerRequest
> => Effect.flatMap(makeIdentify, (identifyNow) => identifyNow(credential, operators))

/** The credential of a request that a browser may have made: the `token` of the query, else that of a header. */
export const credentialOf = (request: HttpServerRequest.HttpServerRequest, url: URL): string => {
  const token = url.searchParams.get("token")
  return token ?? headerCredential(request)
}

/** The credential of the bearer header, else of `api-key`, which Azure's clients send; empty without one. */
export const headerCredential = ({ headers }: HttpServerRequest.HttpServerRequest): string => {
  const header = headers.authorization ?? ""
  return /^bearer /i.test(header) ? header.slice("bearer ".length).trim() : (headers["api-key"] ?? "").trim()
}

/** Runs a handler for the caller of the request's bearer header, or answers why it is refused. */
type Authenticate = <E, R>(
  handler: Effect.Effect<HttpServerResponse.HttpServerResponse, E, R>,
) => Effect.Effect<
  HttpServerResponse.HttpServerResponse,
  E,
  Exclude<R, Caller> | HttpServerRequest.HttpServerRequest
>

const authenticateWith =
  (identified: Identified): Authenticate =>
  (handler) =>
    Effect.matchEffect(identified, {
      onFailure: errorResponse,
      onSuccess: (principal) => Effect.provideService(handler, Caller, principal),
    })

/** Authentication for routes that are served without HttpApiBuilder (see EdgeRoutes). */
export const makeAuthenticate: Effect.Effect<Authenticate, never, IdentityServices> = Effect.map(
  makeIdentify,
  (identifyNow) => (handler) =>
    Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
      authenticateWith(identifyNow(headerCredential(request), false))(handler),
    ),
)

export const AuthenticationLive: Layer.Layer<Authentication, never, IdentityServices> = Layer.effect(
  Authentication,
  Effect.map(makeIdentify, (identifyNow) =>
    Authentication.of({
      bearer: (handler, { group }) => {
        const operators = Context.get(group.annotations, TakesOperatorToken)
        return Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) =>
          authenticateWith(identifyNow(headerCredential(request), operators))(handler),
        )
      },
    }),
  ),
)
