// How every expected failure reads on the wire: status, headers, body. The only place that knows.
// Handlers fail with the errors of domain/Errors; nobody else turns a fact into a status.
import { Effect } from "effect"
import { HttpServerResponse } from "effect/http"
import type {
  AtCapacity,
  AuthUnavailable,
  BodyTooLarge,
  Draining,
  EngineFailed,
  FileTooLarge,
  Forbidden,
  IdempotencyKeyReused,
  IdempotentAnswerLost,
  IdempotentPending,
  InputTooLong,
  InsufficientMemory,
  InvalidRequest,
  JobNotFound,
  MemoryPressure,
  ModelBusy,
  ModelNotLoaded,
  ModelUnavailable,
  PaymentRequired,
  PromptTooLong,
  RateLimited,
  StoreDown,
  SynthesisFailed,
  Unauthorized,
  UnloadFailed,
} from "#domain/wire/Errors.ts"
import { CurrentRequest } from "./RequestContext.ts"

export type EdgeError =
  | AtCapacity
  | AuthUnavailable
  | BodyTooLarge
  | Draining
  | EngineFailed
  | FileTooLarge
  | Forbidden
  | IdempotencyKeyReused
  | IdempotentAnswerLost
  | IdempotentPending
  | InputTooLong
  | InsufficientMemory
  | InvalidRequest
  | JobNotFound
  | MemoryPressure
  | ModelBusy
  | ModelNotLoaded
  | ModelUnavailable
  | PaymentRequired
  | PromptTooLong
  | RateLimited
  | StoreDown
  | SynthesisFailed
  | Unauthorized
  | UnloadFailed

export interface Problem {
  readonly status: number
  readonly detail: string
  /** Where the specification wants another body than `{detail}`. */
  readonly body?: object
  readonly headers?: Readonly<Record<string, string>>
}

const unauthorized: Readonly<Record<Unauthorized["reason"], string>> = {
  missing: "Missing bearer token",
  "invalid-key": "Invalid API key",
  "malformed-token": "Invalid token: Not enough segments",
  "invalid-token": "Invalid token: Signature verification failed",
  "expired-token": "Token has expired",
  "wrong-algorithm": "Invalid token: Algorithm not allowed",
  "wrong-type": "Invalid token: Not a session token",
  "wrong-audience": "Invalid token: Invalid audience",
  "wrong-issuer": "Invalid token: Invalid issuer",
  "wrong-claims": "Invalid token: Missing or malformed claims",
  "premature-token": "Invalid token: Not yet valid",
}

const engineFailed: Readonly<Record<EngineFailed["reason"], string>> = {
  failed: "The model failed to produce an answer",
  crashed: "The model's engine stopped unexpectedly",
  hung: "The model's engine stopped responding",
  unloaded: "The model was unloaded",
  protocol: "The model's engine misbehaved",
}

const gigabytes = (bytes: number): string => (bytes / 1024 ** 3).toFixed(2)

/** Whole seconds, rounded up, as the header wants them; never 0, which would invite a retry at once. */
const retryAfter = (ms: number) => ({ "retry-after": String(Math.max(1, Math.ceil(ms / 1000))) })

/** A header of at most 2 KB: voices that need other characters than visible ASCII, and those beyond, are left out. */
const availableVoices = (voices: ReadonlyArray<string> = []): Readonly<Record<string, string>> => {
  let list = ""
  for (const voice of voices) {
    if (!/^[\x21-\x2b\x2d-\x7e]+$/.test(voice) || list.length + voice.length > 2_000) continue
    list += list === "" ? voice : `, ${voice}`
  }
  return list === "" ? {} : { "x-available-voices": list }
}

/** What the wire says about a failure. Facts go out, internals (causes, paths, signals) do not. */
export const problemOf = (error: EdgeError): Problem => {
  switch (error._tag) {
    case "InvalidRequest":
      return { status: 400, detail: error.field === "" ? error.problem : `${error.field}: ${error.problem}` }
    case "PromptTooLong":
      return {
        status: 400,
        detail: `${error.field}: ${error.promptTokens} prompt tokens do not fit the model's context of ${error.contextTokens} tokens`,
      }
    case "Unauthorized":
      return { status: 401, detail: unauthorized[error.reason], headers: { "www-authenticate": "Bearer" } }
    case "PaymentRequired":
      return { status: 402, detail: "Billing access denied" }
    case "Forbidden":
      return { status: 403, detail: `Requires the ${error.scope} scope` }
    case "ModelNotLoaded":
      return { status: 404, detail: "Model not loaded" }
    case "BodyTooLarge":
      return { status: 413, detail: `body: larger than ${error.limitBytes} bytes` }
    case "FileTooLarge": {
      const detail = `file: larger than ${error.limitBytes / 1024 / 1024} MB; split the audio into smaller files`
      const type = "invalid_request_error"
      return {
        status: 413,
        detail,
        body: { message: detail, error: { message: detail, type, code: "file_too_large" } },
      }
    }
    case "JobNotFound":
      return { status: 404, detail: "Job not found" }
    case "ModelBusy":
      return { status: 409, detail: `force: models are in use: ${error.models.join(", ")}` }
    case "IdempotencyKeyReused":
      return { status: 422, detail: "Idempotency-Key: was used before with another request" }
    case "IdempotentPending":
      return {
        status: 409,
        detail: "Idempotency-Key: the first request with it is still being answered",
        headers: retryAfter(error.retryAfterMs),
      }
    case "IdempotentAnswerLost":
      return { status: 409, detail: "Idempotency-Key: was answered before, with more than is kept" }
    case "InputTooLong":
      return { status: 413, detail: `input: ${error.model} speaks at most ${error.maxCharacters} characters` }
    case "SynthesisFailed":
      return { status: 502, detail: "TTS backend error", headers: availableVoices(error.voices) }
    case "RateLimited":
      return { status: 429, detail: "Rate limit exceeded", headers: retryAfter(error.retryAfterMs) }
    case "EngineFailed":
      return { status: 500, detail: engineFailed[error.reason] }
    case "AtCapacity":
      return { status: 503, detail: "Model is at capacity", headers: retryAfter(error.retryAfterMs) }
    case "AuthUnavailable":
      return {
        status: 503,
        detail: "Session tokens cannot be checked",
        headers: retryAfter(error.retryAfterMs),
      }
    case "StoreDown":
      return { status: 503, detail: "Store is unavailable", headers: retryAfter(error.retryAfterMs) }
    case "ModelUnavailable":
      return { status: 503, detail: "Model is unavailable", headers: retryAfter(error.retryAfterMs) }
    case "InsufficientMemory":
      return {
        status: 503,
        detail:
          `Not enough memory: ${error.model} needs ${gigabytes(error.wantedBytes)} GB, ` +
          `${gigabytes(Math.max(0, error.freeBytes))} GB are free on ${error.device}`,
        headers: retryAfter(error.retryAfterMs),
      }
    case "MemoryPressure":
      return {
        status: 503,
        detail: "The node's memory is nearly full",
        headers: retryAfter(error.retryAfterMs),
      }
    case "UnloadFailed": {
      const detail = `${error.model} is not unloaded: its process still holds ${gigabytes(error.heldBytes)} GB`
      return {
        status: 500,
        detail,
        body: { status: "failed", model: error.model, message: detail, detail },
      }
    }
    case "Draining":
      return { status: 503, detail: "Server is shutting down", headers: retryAfter(1_000) }
  }
}

export const problemResponse = ({
  body,
  detail,
  headers,
  status,
}: Problem): HttpServerResponse.HttpServerResponse =>
  HttpServerResponse.jsonUnsafe(body ?? { detail }, { status, ...(headers === undefined ? {} : { headers }) })

/** The answer to a failed request; the failure itself is noted for the operator's log. */
export const errorResponse = (error: EdgeError): Effect.Effect<HttpServerResponse.HttpServerResponse> =>
  Effect.map(CurrentRequest, (notes) => {
    notes.failure = error
    return problemResponse(problemOf(error))
  })

/** The object inside a failed stream's last event, in OpenAI's form. */
export const streamError = (error: EdgeError): { readonly message: string; readonly type: string } => {
  const { detail, status } = problemOf(error)
  return { message: detail, type: status < 500 ? "invalid_request_error" : "server_error" }
}
