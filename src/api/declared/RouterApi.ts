// The router role's endpoint (protocol 15).
import { Schema } from "effect"
import * as HttpApi from "effect/http-api/HttpApi"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import { errors } from "#http/Declared.ts"
import { QueryCheck } from "./QueryErrors.ts"
import { text } from "./SharedReplies.ts"

const Route = Schema.Struct({
  region: Schema.String,
  name: Schema.String,
  endpoint: Schema.String,
  /** Seconds for which the client may keep the answer. */
  ttl: Schema.Int,
})

class RoutesGroup extends HttpApiGroup.make("Routes").add(
  HttpApiEndpoint.get("route", "/v1/route", {
    query: { scope: text },
    success: HttpApiSchema.WithHeaders(Route, { "cache-control": Schema.String }),
    error: errors("InvalidRequest", "NoHealthyRegion", "Draining"),
  }).middleware(QueryCheck),
) {}

export class RouterApi extends HttpApi.make("edgewise-router").add(RoutesGroup) {}
