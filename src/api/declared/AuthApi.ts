// The auth role's endpoints (protocol 14).
import { Schema } from "effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import { errors } from "#http/Declared.ts"

const cacheControl = { "cache-control": Schema.String }

const Session = Schema.Struct({
  session_token: Schema.String,
  token_type: Schema.Literal("Bearer"),
  /** Seconds. */
  expires_in: Schema.Int,
  /** Unix time. */
  expires_at: Schema.Int,
})

/** Public keys, as RFC 8037 writes them for Ed25519. */
const KeySet = Schema.Struct({
  keys: Schema.Array(
    Schema.Struct({
      kty: Schema.Literal("OKP"),
      crv: Schema.Literal("Ed25519"),
      x: Schema.String,
      kid: Schema.String,
      alg: Schema.Literal("EdDSA"),
      use: Schema.Literal("sig"),
    }),
  ),
})

class SessionsGroup extends HttpApiGroup.make("Sessions").add(
  HttpApiEndpoint.post("createSession", "/v1/auth/session", {
    success: HttpApiSchema.WithHeaders(Session, cacheControl),
    error: errors("Unauthorized", "RateLimited", "Draining", "StoreDown", "InvalidRequest", "BodyTooLarge"),
  }),
  HttpApiEndpoint.get("keySet", "/.well-known/jwks.json", {
    success: HttpApiSchema.WithHeaders(KeySet, cacheControl),
    error: errors("StoreDown"),
  }),
) {}

export class AuthApi extends HttpApi.make("edgewise-auth").add(SessionsGroup) {}
