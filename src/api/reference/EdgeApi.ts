// The edge role's endpoints as one definition: what OpenAPI prints and what EdgeRoutes serves.
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { ChatCompletion, ChatRequest } from "#domain/wire/Chat.ts"
import { Completion, CompletionRequest } from "#domain/wire/Completion.ts"
import { SpeechRequest } from "#domain/wire/Speech.ts"
import { Authentication } from "../access/Authentication.ts"
import { ReloadRecord } from "../operations/CatalogReload.ts"
import { HealthRecord } from "../operations/Health.ts"
import { ModelLogsRecord } from "../operations/ModelLogs.ts"
import { ModelList, ModelListEntry, ModelStatusRecord } from "../operations/Models.ts"
import { NodeTreeRecord } from "../operations/NodeTree.ts"
import { LoadRequest, PurgeRequest, UnloadRequest } from "../operations/Operations.ts"
import { PullRequest } from "../operations/PullRequest.ts"

const detail = (name: string, status: number, description: string) =>
  Schema.Struct({ detail: Schema.String }).annotate({
    identifier: name,
    description,
    httpApiStatus: status,
  })

const BadRequest = detail("BadRequest", 400, "A parameter is missing or wrong; `detail` names it")
const NotAuthorized = detail("NotAuthorized", 401, "No credential, or one that is not valid")
const BillingDenied = detail("BillingDenied", 402, "The organization has no payment method and no credits")
const NotLoaded = detail("NotLoaded", 404, "The model is not deployed on this node")
const TooLarge = detail("TooLarge", 413, "The body is larger than 8,000,000 bytes")
const TooManyRequests = detail("TooManyRequests", 429, "Rate limit exceeded; see `Retry-After`")
const Failed = detail("Failed", 500, "The model's engine failed")
const AtCapacity = detail("AtCapacity", 503, "The model is at capacity or unavailable; see `Retry-After`")

const StillAnswered = detail("StillAnswered", 409, "`Idempotency-Key`: the first request is being answered")
const KeyReused = detail("KeyReused", 422, "`Idempotency-Key`: was used before with another request")
/** Of requests that may carry an Idempotency-Key. */
const idempotencyErrors = [StillAnswered, KeyReused] as const

const generationErrors = [
  ...idempotencyErrors,
  BadRequest,
  NotAuthorized,
  BillingDenied,
  NotLoaded,
  TooLarge,
  TooManyRequests,
  Failed,
  AtCapacity,
] as const

/** Queries are checked by the handlers, which know the form's fields as well and name the field that is wrong. */
const text = Schema.optionalKey(Schema.String)

const eventStream = HttpApiSchema.StreamUint8Array({ contentType: "text/event-stream" })

export class TextGroup extends HttpApiGroup.make("Text")
  .add(
    HttpApiEndpoint.post("chatCompletions", "/v1/chat/completions", {
      payload: ChatRequest,
      success: [ChatCompletion, eventStream],
      error: generationErrors,
    }),
    HttpApiEndpoint.post("completions", "/v1/completions", {
      payload: CompletionRequest,
      success: [Completion, eventStream],
      error: generationErrors,
    }),
  )
  .middleware(Authentication) {}

const InputTooLong = detail(
  "InputTooLong",
  413,
  "The text is longer than the model speaks; `detail` names the limit",
)
const SynthesisFailed = detail(
  "SynthesisFailed",
  502,
  "Synthesis failed: unknown voice (the header X-Available-Voices lists those of the model), or the engine failed",
)

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
      // The content type follows `response_format`: audio/wav, audio/mpeg and audio/ogg besides this one. WAV and MP3
      // have a Content-Length; PCM is chunked, with and without `stream`.
      success: HttpApiSchema.StreamUint8Array({ contentType: "audio/pcm" }),
      error: [
        ...idempotencyErrors,
        BadRequest,
        NotAuthorized,
        BillingDenied,
        NotLoaded,
        InputTooLong,
        TooManyRequests,
        SynthesisFailed,
        AtCapacity,
      ],
    }),
    HttpApiEndpoint.get("voices", "/v1/audio/voices", {
      query: { model: text },
      success: VoiceList,
      error: [BadRequest, NotAuthorized, NotLoaded, TooManyRequests],
    }),
  )
  .middleware(Authentication) {}

const FileTooLarge = Schema.Struct({
  message: Schema.String,
  error: Schema.Struct({ message: Schema.String, type: Schema.String, code: Schema.String }),
}).annotate({ identifier: "FileTooLarge", description: "The file is larger than 100 MB", httpApiStatus: 413 })
const JobUnknown = detail("JobUnknown", 404, "No such job of this organization, or the model is not deployed")

const JobState = Schema.Struct({
  job_id: Schema.String,
  status: Schema.Literals(["accepted", "processing", "completed", "failed", "cancelled"]),
})
const Accepted = Schema.Struct({ ...JobState.fields, poll_url: Schema.String }).annotate({
  httpApiStatus: 202,
})
const InProgress = Schema.Struct({ ...JobState.fields, poll_interval_ms: Schema.Int }).annotate({
  httpApiStatus: 202,
})
const TranscriptBody = Schema.Struct({ text: Schema.String })
const jobQuery = { job_id: text }
const transcriptionQuery = {
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

export class TranscriptionGroup extends HttpApiGroup.make("Transcription")
  .add(
    HttpApiEndpoint.post("transcribe", "/v1/audio/transcriptions", {
      query: transcriptionQuery,
      success: [TranscriptBody, Accepted, eventStream],
      error: [
        ...idempotencyErrors,
        BadRequest,
        NotAuthorized,
        BillingDenied,
        NotLoaded,
        FileTooLarge,
        TooManyRequests,
        Failed,
        AtCapacity,
      ],
    }),
    HttpApiEndpoint.get("pollTranscription", "/v1/audio/transcriptions", {
      query: jobQuery,
      success: [Schema.Struct({ ...TranscriptBody.fields, ...JobState.fields }), InProgress],
      error: [BadRequest, NotAuthorized, JobUnknown, TooManyRequests],
    }),
    HttpApiEndpoint.delete("cancelTranscription", "/v1/audio/transcriptions", {
      query: jobQuery,
      success: JobState,
      error: [BadRequest, NotAuthorized, JobUnknown, TooManyRequests],
    }),
  )
  .middleware(Authentication) {}

const modelId = {
  id: Schema.String.annotate({
    description: "A model's id; a slash in it may be written as it is or as `%2F`",
  }),
}

export class ModelsGroup extends HttpApiGroup.make("Models")
  .add(
    HttpApiEndpoint.get("listModels", "/v1/models", {
      success: ModelList,
      error: [NotAuthorized, TooManyRequests],
    }),
    HttpApiEndpoint.get("oneModel", "/v1/models/:id", {
      params: modelId,
      success: ModelListEntry,
      error: [NotAuthorized, NotLoaded, TooManyRequests],
    }),
    // The same with the slash of an id like `Qwen/Qwen3-0.6B` as it is; OpenAPI knows no parameter with a slash.
    HttpApiEndpoint.get("oneModelOfOwner", "/v1/models/:owner/:name", {
      params: { owner: Schema.String, name: Schema.String },
      success: ModelListEntry,
      error: [NotAuthorized, NotLoaded, TooManyRequests],
    }).annotate(OpenApi.Exclude, true),
    HttpApiEndpoint.get("modelStatus", "/v1/models/status", {
      success: ModelStatusRecord,
      error: [NotAuthorized, TooManyRequests],
    }),
  )
  .middleware(Authentication) {}

const NeedsOperator = detail("NeedsOperator", 403, "The credential lacks the superadmin scope")
const InUse = detail("InUse", 409, "Models are in use and `force` is not set")
const operatorErrors = [BadRequest, NotAuthorized, NeedsOperator, TooManyRequests] as const
/** The records are the specification's; they are written by the handlers and not decoded by anybody here. */
const record = Schema.Record(Schema.String, Schema.Unknown)

export class OperationsGroup extends HttpApiGroup.make("Operations")
  .add(
    HttpApiEndpoint.post("loadModel", "/v1/models/load", {
      payload: LoadRequest,
      success: record,
      error: [...operatorErrors, NotLoaded, AtCapacity],
    }),
    HttpApiEndpoint.post("unloadModel", "/v1/models/unload", {
      payload: UnloadRequest,
      success: record,
      error: [...operatorErrors, NotLoaded, Failed, AtCapacity],
    }),
    HttpApiEndpoint.get("modelLogs", "/v1/models/logs", {
      query: { model: text, after: text },
      success: ModelLogsRecord,
      error: [...operatorErrors, NotLoaded],
    }),
    HttpApiEndpoint.post("unloadAll", "/v1/models/unload-all", { success: record, error: operatorErrors }),
    HttpApiEndpoint.post("pullModel", "/v1/models/pull", {
      payload: PullRequest,
      success: eventStream,
      error: [...operatorErrors, NotLoaded, AtCapacity],
    }),
    HttpApiEndpoint.post("reloadCatalog", "/v1/models/reload", {
      success: ReloadRecord,
      error: [...operatorErrors, AtCapacity],
    }),
    HttpApiEndpoint.get("gpuStatus", "/v1/gpu/status", { success: record, error: operatorErrors }),
    HttpApiEndpoint.get("gpuMemory", "/v1/gpu/memory", { success: record, error: operatorErrors }),
    HttpApiEndpoint.post("gpuPurge", "/v1/gpu/purge", {
      payload: PurgeRequest,
      success: record,
      error: [...operatorErrors, InUse],
    }),
    HttpApiEndpoint.get("nodeTree", "/v1/node/tree", { success: NodeTreeRecord, error: operatorErrors }),
  )
  .middleware(Authentication) {}

export class SystemGroup extends HttpApiGroup.make("System").add(
  HttpApiEndpoint.get("health", "/health", { success: HealthRecord }),
) {}

/** The endpoints that EdgeRoutes serves with HttpApiBuilder: all but those of text. */
export class BuiltApi extends HttpApi.make("edgewise")
  .add(SpeechGroup)
  .add(TranscriptionGroup)
  .add(ModelsGroup)
  .add(OperationsGroup)
  .add(SystemGroup) {}

export class EdgeApi extends HttpApi.make("edgewise")
  .add(TextGroup)
  .addHttpApi(BuiltApi)
  .annotateMerge(
    OpenApi.annotations({
      title: "edgewise",
      version: "1",
      description:
        "An OpenAI-style inference node. Unless the operator has brought other weights, the models are small " +
        "demonstration weights (`owned_by: edgewise-demo`): they show that everything works, not what large models can say.",
    }),
  ) {}
