// Transcription of files (protocol 9).
import { Schema } from "effect"
import { Multipart } from "effect/http"
import * as HttpApiEndpoint from "effect/http-api/HttpApiEndpoint"
import * as HttpApiGroup from "effect/http-api/HttpApiGroup"
import * as HttpApiSchema from "effect/http-api/HttpApiSchema"
import {
  JobAccepted,
  JobCancelled,
  JobCompleted,
  JobCompletedVerbose,
  JobEnded,
  JobWaits,
  TranscriptEvent,
  TranscriptText,
  VerboseTranscript,
} from "#domain/wire/events/TranscriptEvents.ts"
import { mostKeywordCharacters, mostKeywords } from "#domain/wire/Transcription.ts"
import { errors, eventStream, OwnHeaders, StreamEvents } from "#http/Declared.ts"
import { Authentication } from "../access/Authentication.ts"
import { QueryCheck } from "./QueryErrors.ts"
import { ofModels, ofRuns, onceErrors, onceHeaders, streamHeaders, text } from "./SharedReplies.ts"

/** In the query or, where it is not there, as a form field. */
const parameters = {
  model: text,
  language: text,
  prompt: text,
  response_format: text,
  temperature: text,
  punctuation: Schema.optionalKey(
    Schema.String.annotate({
      description:
        "true adds punctuation where the model writes none (400 in a language without rules), false removes it",
    }),
  ),
  stream: text,
  sync: text,
  include_timing: text,
}

/** Of translations. */
const translated = {
  model: text,
  language: Schema.optionalKey(
    Schema.String.annotate({ description: "The language that is spoken; detected without it" }),
  ),
  prompt: text,
  response_format: text,
  temperature: text,
}

const texts = Schema.optionalKey(Schema.Array(Schema.String))

const keywords = {
  "keywords[]": Schema.optionalKey(
    Schema.Array(Schema.String).annotate({
      description: `Names and terms that may occur: at most ${mostKeywords}, each of at most ${mostKeywordCharacters} characters. keyterm is another name of it`,
    }),
  ),
}

/** The form. The handler reads it itself: the file goes to disk as it arrives. */
const TranscriptionForm = Schema.Struct({
  file: Multipart.SingleFileSchema.annotate({ description: "The audio; at most 100 MB" }),
  ...parameters,
  "languages[]": texts,
  ...keywords,
  "timestamp_granularities[]": texts,
  timestamp_granularities: texts,
  "include[]": Schema.optionalKey(
    Schema.Array(Schema.String).annotate({
      description: "logprobs: the log probabilities of the text's tokens, in json and in streams",
    }),
  ),
}).pipe(HttpApiSchema.asMultipart())

const TranslationForm = Schema.Struct({
  file: Multipart.SingleFileSchema.annotate({ description: "The audio; at most 100 MB" }),
  ...translated,
  ...keywords,
  "timestamp_granularities[]": texts,
}).pipe(HttpApiSchema.asMultipart())

const plain = (contentType: string) => Schema.String.pipe(HttpApiSchema.asText({ contentType }))
/**
 * Declared as an error although no handler fails with it: in the OpenAPI document the errors of a status replace a success schema of
 * the same status.
 */
const ended = JobEnded.annotate({ description: "The job failed or was cancelled" }).pipe(
  HttpApiSchema.status(400),
)

const jobQuery = { job_id: text }
const ofJobs = ["InvalidRequest", "JobNotFound"] as const

export class TranscriptionGroup extends HttpApiGroup.make("Transcription")
  .add(
    HttpApiEndpoint.post("transcribe", "/v1/audio/transcriptions", {
      query: parameters,
      payload: TranscriptionForm,
      success: [
        VerboseTranscript,
        TranscriptText,
        plain("text/plain; charset=utf-8"),
        plain("text/vtt; charset=utf-8"),
        JobAccepted.pipe(HttpApiSchema.status(202)),
        eventStream,
      ],
      error: errors("FileTooLarge", "NotInstalled", ...onceErrors, ...ofModels, ...ofRuns),
    })
      .annotate(StreamEvents, TranscriptEvent)
      .annotate(OwnHeaders, [...streamHeaders, ...onceHeaders])
      .middleware(QueryCheck),
    HttpApiEndpoint.post("translate", "/v1/audio/translations", {
      query: translated,
      payload: TranslationForm,
      success: [
        VerboseTranscript,
        TranscriptText,
        plain("text/plain; charset=utf-8"),
        plain("text/vtt; charset=utf-8"),
      ],
      error: errors("FileTooLarge", "NotInstalled", ...onceErrors, ...ofModels, ...ofRuns),
    })
      .annotate(OwnHeaders, onceHeaders)
      .middleware(QueryCheck),
    HttpApiEndpoint.get("pollTranscription", "/v1/audio/transcriptions", {
      query: jobQuery,
      success: [JobCompletedVerbose, JobCompleted, JobWaits.pipe(HttpApiSchema.status(202))],
      error: [...errors(...ofJobs), ended],
    }).middleware(QueryCheck),
    HttpApiEndpoint.delete("cancelTranscription", "/v1/audio/transcriptions", {
      query: jobQuery,
      success: JobCancelled,
      error: errors(...ofJobs, "BodyTooLarge"),
    }).middleware(QueryCheck),
  )
  .middleware(Authentication) {}
