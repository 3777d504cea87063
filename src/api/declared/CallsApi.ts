// WebRTC calls (protocol 19.8): a browser's offer becomes a conversation.
import { Schema } from "effect"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import { errors, OwnHeaders } from "#http/Declared.ts"
import { hangUpPath } from "#http/NotFound.ts"
import { Authentication } from "../access/Authentication.ts"
import { ofJson, ofModels, ofRuns, text } from "./SharedReplies.ts"

const sdp = Schema.String.pipe(HttpApiSchema.asText({ contentType: "application/sdp" }))

const CallForm = Schema.Struct({
  sdp: Schema.String.annotate({ description: "The offer; a part may have the content type application/sdp" }),
  session: Schema.optionalKey(
    Schema.String.annotate({ description: "JSON: the session as in `session.update`, with `model`" }),
  ),
}).pipe(HttpApiSchema.asMultipart())

/** Without the middleware of Authentication: a client secret opens a call, too, and the handler tells the two apart. */
export class CallsGroup extends HttpApiGroup.make("Calls").add(
  HttpApiEndpoint.post("createCall", "/v1/realtime/calls", {
    query: { model: text },
    payload: [sdp, CallForm],
    success: sdp.annotate({ description: "The answer" }).pipe(HttpApiSchema.status(201)),
    error: errors(
      ...ofJson,
      ...ofModels,
      ...ofRuns,
      "AuthUnavailable",
      "RateLimited",
      "StoreDown",
      "CallNotFound",
    ),
  }).annotate(OwnHeaders, ["location", "cache-control"]),
) {}

export class HangUpGroup extends HttpApiGroup.make("HangUp")
  .add(
    HttpApiEndpoint.post("hangUpCall", hangUpPath, {
      params: { id: Schema.String },
      success: HttpApiSchema.Empty(200),
      error: errors(...ofJson, "CallNotFound"),
    }),
  )
  .middleware(Authentication) {}
