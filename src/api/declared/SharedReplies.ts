// Codes of errors, and headers, that several endpoints have in common.
import { Schema } from "effect"

/** A query parameter. Handlers check it: they name the field that is wrong. */
export const text = Schema.optionalKey(Schema.String)

/** Of requests with a JSON body. */
export const ofJson = ["InvalidRequest", "BodyTooLarge"] as const

/** Of requests that may carry an `Idempotency-Key` (protocol 5.5). */
export const onceErrors = ["IdempotentPending", "IdempotentAnswerLost", "IdempotencyKeyReused"] as const
export const onceHeaders = ["idempotency-replayed"]

/** Of requests that name a model. */
export const ofModels = ["InvalidRequest", "ModelNotLoaded"] as const

/** Of requests that are paid for and run on a model. A key may be revoked while one runs. */
export const ofRuns = [
  "PaymentRequired",
  "Unauthorized",
  "PromptTooLong",
  "EngineFailed",
  "AtCapacity",
  "ModelUnavailable",
  "InsufficientMemory",
  "MemoryPressure",
  "Draining",
] as const

/** Of event streams and of audio that is sent while it is made. */
export const streamHeaders = ["cache-control", "x-accel-buffering"]
