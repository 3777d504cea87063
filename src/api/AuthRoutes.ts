// The auth role's handlers behind the endpoints that AuthApi declares.
import { Effect, Layer } from "effect"
import * as HttpApiBuilder from "effect/http-api/HttpApiBuilder"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import { keySetAgeSeconds } from "#domain/access/SigningSchedule.ts"
import { errorResponse } from "#http/ErrorBody.ts"
import { SigningKeys } from "#store/signing/SigningKeys.ts"
import { createSession } from "./access/Sessions.ts"
import { AuthApi } from "./declared/AuthApi.ts"
import { knownPathsOf } from "./declared/KnownPaths.ts"
import { withoutBody } from "./http/JsonBody.ts"
import { otherPaths } from "./http/OtherPaths.ts"

/** Paths and their methods, for 405, preflights and metrics. */
export const knownPaths = knownPathsOf(AuthApi)

const keySet = Effect.gen(function* () {
  const keys = yield* Effect.orDie((yield* SigningKeys).published)
  const headers = { "cache-control": `public, max-age=${keySetAgeSeconds}` }
  return HttpApiSchema.withHeaders({ body: { keys }, headers })
})

const session = Effect.map(createSession, (body) =>
  HttpApiSchema.withHeaders({ body, headers: { "cache-control": "no-store" } }),
)

const Sessions = HttpApiBuilder.group(AuthApi, "Sessions", (handlers) =>
  handlers
    // The credential first: a body of no one that is known here is not read.
    .handle("createSession", ({ request }) =>
      Effect.catch(
        Effect.flatMap(session, (made) => withoutBody(request)(Effect.succeed(made))),
        errorResponse,
      ),
    )
    .handle("keySet", () => keySet),
)

/** Everything the auth listener serves. */
export const AuthRoutes = Layer.mergeAll(
  HttpApiBuilder.layer(AuthApi).pipe(Layer.provide(Sessions)),
  otherPaths(knownPaths),
)
