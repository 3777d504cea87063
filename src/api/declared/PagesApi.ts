// Metrics, pages and the API document (protocol 13.2, 13.3). The OpenAPI document leaves them out.
import { Schema } from "effect"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import * as OpenApi from "effect/http-api/OpenApi"
import { errors, OwnHeaders } from "#http/Declared.ts"
import { playgroundFiles } from "#http/NotFound.ts"
import { contentType } from "../metrics/PrometheusText.ts"

const asset = (contentType: string) =>
  [Schema.String.pipe(HttpApiSchema.asText({ contentType })), HttpApiSchema.Empty(304)] as const

const assetHeaders = ["etag", "vary", "cache-control", "content-encoding"]

export class PagesGroup extends HttpApiGroup.make("Pages")
  .add(
    HttpApiEndpoint.get("playground", "/", { success: asset("text/html; charset=utf-8") }).annotate(
      OwnHeaders,
      assetHeaders,
    ),
    HttpApiEndpoint.get("playgroundFile", playgroundFiles, {
      success: [
        ...asset("text/javascript; charset=utf-8"),
        Schema.String.pipe(HttpApiSchema.asText({ contentType: "text/css; charset=utf-8" })),
        Schema.String.pipe(HttpApiSchema.asText({ contentType: "image/svg+xml" })),
      ],
    }).annotate(OwnHeaders, assetHeaders),
    HttpApiEndpoint.get("docs", "/docs", { success: asset("text/html; charset=utf-8") }).annotate(
      OwnHeaders,
      assetHeaders,
    ),
    HttpApiEndpoint.get("docsScript", "/docs/scalar.js", {
      success: asset("text/javascript; charset=utf-8"),
    }).annotate(OwnHeaders, assetHeaders),
    HttpApiEndpoint.get("openapi", "/openapi.json", { success: asset("application/json") }).annotate(
      OwnHeaders,
      assetHeaders,
    ),
    HttpApiEndpoint.get("metrics", "/metrics", {
      success: Schema.String.pipe(HttpApiSchema.asText({ contentType })),
      error: errors("Unauthorized", "AuthUnavailable", "RateLimited", "Forbidden", "StoreDown"),
    }),
  )
  .annotate(OpenApi.Exclude, true) {}
