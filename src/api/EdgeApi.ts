// The edge role's endpoints as one definition: what OpenAPI prints and what EdgeRoutes serves. Rows, no logic.
import { Schema } from "effect"
import { HttpApi, HttpApiEndpoint, HttpApiGroup, HttpApiSchema, OpenApi } from "effect/http-api"
import { ChatCompletion, ChatRequest } from "#domain/Chat.ts"
import { Completion, CompletionRequest } from "#domain/Completion.ts"
import { SpeechRequest } from "#domain/Speech.ts"
import { Authentication } from "./Authentication.ts"
import { HealthRecord } from "./Health.ts"
import { ModelList, ModelStatusRecord } from "./Models.ts"

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

const generationErrors = [
  BadRequest,
  NotAuthorized,
  BillingDenied,
  NotLoaded,
  TooLarge,
  TooManyRequests,
  Failed,
  AtCapacity,
] as const

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
  "Synthesis failed: unknown voice, or the engine failed",
)

const VoiceList = Schema.Struct({
  model: Schema.String,
  voices: Schema.Array(Schema.String),
  cloning: Schema.Boolean,
  languages: Schema.Array(Schema.String),
})

export class SpeechGroup extends HttpApiGroup.make("Speech")
  .add(
    HttpApiEndpoint.post("speech", "/v1/audio/speech", {
      payload: SpeechRequest,
      // The content type follows `response_format`: audio/wav, audio/mpeg and audio/ogg besides this one.
      success: HttpApiSchema.StreamUint8Array({ contentType: "audio/pcm" }),
      error: [
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
      query: { model: Schema.String },
      success: VoiceList,
      error: [BadRequest, NotAuthorized, NotLoaded, TooManyRequests],
    }),
  )
  .middleware(Authentication) {}

export class ModelsGroup extends HttpApiGroup.make("Models")
  .add(
    HttpApiEndpoint.get("listModels", "/v1/models", {
      success: ModelList,
      error: [NotAuthorized, TooManyRequests],
    }),
    HttpApiEndpoint.get("modelStatus", "/v1/models/status", {
      success: ModelStatusRecord,
      error: [NotAuthorized, TooManyRequests],
    }),
  )
  .middleware(Authentication) {}

export class SystemGroup extends HttpApiGroup.make("System").add(
  HttpApiEndpoint.get("health", "/health", { success: HealthRecord }),
) {}

export class EdgeApi extends HttpApi.make("edgewise")
  .add(TextGroup)
  .add(SpeechGroup)
  .add(ModelsGroup)
  .add(SystemGroup)
  .annotateMerge(
    OpenApi.annotations({
      title: "edgewise",
      version: "1",
      description:
        "An OpenAI-style inference node. Unless the operator has brought other weights, the models are small " +
        "demonstration weights (`owned_by: edgewise-demo`): they show that everything works, not what large models can say.",
    }),
  ) {}
