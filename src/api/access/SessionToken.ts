// A session token: an API key's principal as a JWT, signed with Ed25519. Its claims, how it is made and how it is
// checked. Holds no key and no clock. Whether the API key behind a token is still valid is not checked here.
import { Effect, Schema } from "effect"
import { type CryptoKey, errors, jwtVerify, SignJWT } from "jose"
import { clockSkewMs, maxSessionMs } from "#domain/access/SigningSchedule.ts"
import { type AuthUnavailable, Unauthorized } from "#domain/wire/Errors.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import { type Signer, signingAlgorithm } from "#store/signing/SigningKeys.ts"

const issuer = "edgewise"
const audience = "edgewise-edge"
/** RFC 8725: a type of its own, so that no other token of the same signer can pass for a session. */
const type = "session+jwt"

const Claims = Schema.Struct({
  iss: Schema.Literal(issuer),
  aud: Schema.Literal(audience),
  /** The user's id. */
  sub: Schema.NonEmptyString,
  org: Schema.NonEmptyString,
  user: Schema.NonEmptyString,
  scope: Schema.Literals(["read-write", "superadmin"]),
  key_id: Schema.NonEmptyString,
  jti: Schema.NonEmptyString,
  /** Seconds since 1970. */
  iat: Schema.Int,
  exp: Schema.Int,
})
export type SessionClaims = typeof Claims.Type

interface NewSession {
  readonly principal: Principal
  readonly jti: string
  readonly nowMs: number
  readonly lifetimeSeconds: number
}

export const claimsOf = ({ jti, lifetimeSeconds, nowMs, principal }: NewSession): SessionClaims => {
  const iat = Math.floor(nowMs / 1000)
  return {
    iss: issuer,
    aud: audience,
    sub: principal.userId,
    org: principal.orgName,
    user: principal.userName,
    scope: principal.scope,
    key_id: principal.keyId,
    jti,
    iat,
    exp: iat + lifetimeSeconds,
  }
}

export const signSession = (claims: SessionClaims, { kid, privateKey }: Signer): Effect.Effect<string> =>
  Effect.promise(() =>
    new SignJWT({ ...claims }).setProtectedHeader({ alg: signingAlgorithm, typ: type, kid }).sign(privateKey),
  )

/**
 * The token's JSON in exactly this file's spelling and base64url; undefined for any other spelling. With one spelling a token
 * has one digest, and duplicate members are detected: JSON.parse would keep the last one without an error.
 */
const ownJson = (segment: string): unknown => {
  const bytes = ownBytes(segment)
  if (bytes === undefined) return undefined
  const text = bytes.toString("utf8")
  try {
    const value: unknown = JSON.parse(text)
    return JSON.stringify(value) === text ? value : undefined
  } catch {
    return undefined
  }
}

const ownBytes = (segment: string): Buffer | undefined => {
  const bytes = Buffer.from(segment, "base64url")
  return bytes.toString("base64url") === segment ? bytes : undefined
}

const Header = Schema.Struct({
  alg: Schema.optionalKey(Schema.Unknown),
  typ: Schema.optionalKey(Schema.Unknown),
  kid: Schema.String,
})
const decodeHeader = Schema.decodeUnknownOption(Header)

const refuse = (reason: Unauthorized["reason"]) => new Unauthorized({ reason })

/** The id of the key that a token names as its signer, if the token is otherwise well formed. */
const keyIdOf = (token: string): string | Unauthorized => {
  const [header = "", claims = "", signature = "", ...more] = token.split(".")
  if (token.split(".").length < 3) return refuse("malformed-token")
  if (more.length > 0 || ownBytes(signature) === undefined || ownJson(claims) === undefined) {
    return refuse("invalid-token")
  }
  const fields = ownJson(header)
  const decoded = decodeHeader(fields)
  if (decoded._tag === "None") return refuse("invalid-token")
  const { alg, kid, typ } = decoded.value
  if (alg !== signingAlgorithm) return refuse("wrong-algorithm")
  if (typ !== type) return refuse("wrong-type")
  // No other header is allowed: no key of the sender's own (jwk, x5c), no address of one (jku), no extension.
  return Object.keys(fields as object).length === 3 ? kid : refuse("invalid-token")
}

/** The reason of jose's refusal: facts about the token, never its text. */
const reasonOf = (error: unknown): Unauthorized["reason"] => {
  if (error instanceof errors.JWTExpired) return "expired-token"
  if (error instanceof errors.JOSEAlgNotAllowed) return "wrong-algorithm"
  if (!(error instanceof errors.JWTClaimValidationFailed)) return "invalid-token"
  switch (error.claim) {
    case "aud":
      return "wrong-audience"
    case "iss":
      return "wrong-issuer"
    case "typ":
      return "wrong-type"
    case "iat":
    case "nbf":
      return error.reason === "check_failed" ? "premature-token" : "wrong-claims"
    default:
      return "wrong-claims"
  }
}

const decodeClaims = Schema.decodeUnknownEffect(Claims)

export interface VerifiedSession {
  readonly claims: SessionClaims
  readonly kid: string
}

/** Checks signature, type, issuer, audience and times. `findKey` finds the key of an id that is not verified yet. */
export const verifySession = (
  token: string,
  nowMs: number,
  findKey: (kid: string) => Effect.Effect<CryptoKey | undefined, AuthUnavailable>,
): Effect.Effect<VerifiedSession, Unauthorized | AuthUnavailable> =>
  Effect.gen(function* () {
    const kid = keyIdOf(token)
    if (typeof kid !== "string") return yield* kid
    const key = yield* findKey(kid)
    if (key === undefined) return yield* refuse("invalid-token")
    const { payload } = yield* Effect.tryPromise({
      try: () =>
        jwtVerify(token, key, {
          algorithms: [signingAlgorithm],
          typ: type,
          issuer,
          audience,
          requiredClaims: ["sub", "exp", "iat", "jti", "key_id"],
          currentDate: new Date(nowMs),
          clockTolerance: clockSkewMs / 1000,
          // Also makes jose refuse tokens from the future.
          maxTokenAge: maxSessionMs / 1000,
        }),
      catch: (error) => refuse(reasonOf(error)),
    })
    const claims = yield* Effect.mapError(decodeClaims(payload), () => refuse("wrong-claims"))
    return { claims, kid }
  })

/** When a token expires, milliseconds since 1970. */
export const endOf = ({ exp }: SessionClaims): number => exp * 1000 + clockSkewMs
