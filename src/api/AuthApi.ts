// What the auth role's listener serves: sessions, and the public keys to check them with. Rows, no logic.
import { Effect } from "effect"
import { HttpServerRequest, HttpServerResponse } from "effect/http"
import { keySetAgeSeconds } from "#domain/access/SigningSchedule.ts"
import { errorResponse } from "#http/ErrorBody.ts"
import { type KnownPaths, pathOf, unmatched } from "#http/NotFound.ts"
import { SigningKeys } from "#store/signing/SigningKeys.ts"
import { createSession } from "./access/Sessions.ts"
import { storeOutage } from "./http/StoreOutage.ts"

/** Paths and their methods, for 405 and preflight. */
export const knownPaths: KnownPaths = {
  "/v1/auth/session": ["POST"],
  "/.well-known/jwks.json": ["GET"],
}

const keySet = Effect.gen(function* () {
  const keys = yield* Effect.orDie((yield* SigningKeys).published)
  const headers = { "cache-control": `public, max-age=${keySetAgeSeconds}` }
  return HttpServerResponse.jsonUnsafe({ keys }, { headers })
})

/** The whole role as one handler: two paths need no router. */
export const authApi = Effect.flatMap(HttpServerRequest.HttpServerRequest, (request) => {
  const { method, url } = request
  switch (`${method} ${pathOf(url)}`) {
    case "POST /v1/auth/session":
      return storeOutage(Effect.catch(createSession(request), errorResponse))
    case "GET /.well-known/jwks.json":
    case "HEAD /.well-known/jwks.json":
      return storeOutage(keySet)
    default:
      return Effect.succeed(unmatched(knownPaths, method, url))
  }
})
