// A query parameter that is given twice where an endpoint takes one: 400, like any other wrong parameter.
import { Effect, type Layer, type Schema } from "effect"
import * as HttpApiMiddleware from "effect/http-api/HttpApiMiddleware"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { errorResponse } from "#http/ErrorBody.ts"
import { invalidRequestOf } from "../http/JsonBody.ts"

/** Answers a request whose query is not the declared one. Its endpoints declare InvalidRequest. */
export class QueryCheck extends HttpApiMiddleware.Service<QueryCheck>()("edgewise/api/QueryCheck") {}

/** Parameters are optional texts, so only a second value can be wrong. */
const repeated = (cause: Schema.SchemaError) =>
  new InvalidRequest({ field: invalidRequestOf(cause).field, problem: "must be given once" })

export const QueryCheckLive: Layer.Layer<QueryCheck> = HttpApiMiddleware.layerSchemaErrorTransform(
  QueryCheck,
  (error) => (error.kind === "Query" ? errorResponse(repeated(error.cause)) : Effect.fail(error)),
)
