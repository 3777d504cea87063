// Speech (protocol 8).
import { Schema } from "effect"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import { SpeechEvent } from "#domain/wire/events/SpeechEvents.ts"
import { contentTypes, SpeechRequest } from "#domain/wire/Speech.ts"
import { errors, OwnHeaders, StreamEvents } from "#http/Declared.ts"
import { Authentication } from "../access/Authentication.ts"
import { QueryCheck } from "./QueryErrors.ts"
import { ofJson, ofModels, ofRuns, onceErrors, onceHeaders, streamHeaders, text } from "./SharedReplies.ts"

const VoiceList = Schema.Struct({
  model: Schema.String,
  voices: Schema.Array(Schema.String),
  /** Other names, OpenAI's included, and the voice that each means. */
  aliases: Schema.Record(Schema.String, Schema.String),
  cloning: Schema.Boolean,
  languages: Schema.Array(Schema.String),
})

export class SpeechGroup extends HttpApiGroup.make("Speech")
  .add(
    HttpApiEndpoint.post("speech", "/v1/audio/speech", {
      payload: SpeechRequest,
      // The content type follows `response_format`, or is that of events with `stream_format: "sse"`. WAV and MP3 have a Content-Length; PCM is chunked, with and without
      // `stream`.
      success: HttpApiSchema.StreamUint8Array({
        contentType: [...Object.values(contentTypes), "text/event-stream"],
      }),
      error: errors(
        "InputTooLong",
        "NotInstalled",
        "SynthesisFailed",
        ...ofJson,
        ...onceErrors,
        ...ofModels,
        ...ofRuns,
      ),
    })
      .annotate(StreamEvents, SpeechEvent)
      .annotate(OwnHeaders, [...streamHeaders, ...onceHeaders, "x-service-stream", "x-service-sample-rate"]),
    HttpApiEndpoint.get("voices", "/v1/audio/voices", {
      query: { model: text },
      success: VoiceList,
      error: errors(...ofModels),
    }).middleware(QueryCheck),
  )
  .middleware(Authentication) {}
