// Every expected failure of the product, on one page. Errors carry facts; how a fact reads on the wire
// (status, headers, body) is decided in api/ErrorBody alone, and nobody branches on message text.
import { Schema } from "effect"

/** A request that cannot be served as written. `field` names the parameter, `problem` what is wrong with it. */
export class InvalidRequest extends Schema.TaggedError<InvalidRequest>()("InvalidRequest", {
  field: Schema.String,
  problem: Schema.String,
}) {}

/** The request body exceeds its cap, in bytes. */
export class BodyTooLarge extends Schema.TaggedError<BodyTooLarge>()("BodyTooLarge", {
  limitBytes: Schema.Int,
}) {}

/** The prompt does not fit the model's context window. Both counts are tokens of the model's own tokenizer. */
export class PromptTooLong extends Schema.TaggedError<PromptTooLong>()("PromptTooLong", {
  /** `messages` or `prompt`. */
  field: Schema.String,
  promptTokens: Schema.Int,
  contextTokens: Schema.Int,
}) {}

/** No bearer credential, or one that is not a known live key or a valid session token. */
export class Unauthorized extends Schema.TaggedError<Unauthorized>()("Unauthorized", {
  reason: Schema.Literals([
    "missing",
    "invalid-key",
    "malformed-token",
    "invalid-token",
    "expired-token",
    "wrong-algorithm",
    "wrong-type",
    "wrong-audience",
    "wrong-issuer",
    "wrong-claims",
    "premature-token",
  ]),
}) {}

/** Session tokens cannot be checked at present: the keys that sign them cannot be had. */
export class AuthUnavailable extends Schema.TaggedError<AuthUnavailable>()("AuthUnavailable", {
  retryAfterMs: Schema.Finite,
}) {}

/** Accounts, receipts and jobs cannot be read or written at present. */
export class StoreDown extends Schema.TaggedError<StoreDown>()("StoreDown", {
  retryAfterMs: Schema.Finite,
}) {}

/** The organization has neither a payment method nor enough credit for the request. */
export class PaymentRequired extends Schema.TaggedError<PaymentRequired>()("PaymentRequired", {}) {}

/** The credential lacks the scope that the endpoint asks for. */
export class Forbidden extends Schema.TaggedError<Forbidden>()("Forbidden", {
  scope: Schema.String,
}) {}

/** The user passed the node's rate limit; `retryAfterMs` until the next request would be admitted. */
export class RateLimited extends Schema.TaggedError<RateLimited>()("RateLimited", {
  retryAfterMs: Schema.Finite,
}) {}

/** The model is not deployed on this node, or an operator has unloaded it. */
export class ModelNotLoaded extends Schema.TaggedError<ModelNotLoaded>()("ModelNotLoaded", {
  model: Schema.String,
}) {}

/** The model's waiting line is full. */
export class AtCapacity extends Schema.TaggedError<AtCapacity>()("AtCapacity", {
  model: Schema.String,
  retryAfterMs: Schema.Finite,
}) {}

/** The model is deployed but cannot answer at present: its engine failed to load or crashed too often. */
export class ModelUnavailable extends Schema.TaggedError<ModelUnavailable>()("ModelUnavailable", {
  model: Schema.String,
  retryAfterMs: Schema.Finite,
}) {}

/** A device has not the memory that a model needs; nothing was allocated. */
export class InsufficientMemory extends Schema.TaggedError<InsufficientMemory>()("InsufficientMemory", {
  model: Schema.String,
  /** The device's name. */
  device: Schema.String,
  wantedBytes: Schema.Finite,
  freeBytes: Schema.Finite,
  retryAfterMs: Schema.Finite,
}) {}

/** The node's memory is nearly full: no new work of this kind until some of it is free again. */
export class MemoryPressure extends Schema.TaggedError<MemoryPressure>()("MemoryPressure", {
  retryAfterMs: Schema.Finite,
}) {}

/** A model's process did not end, so its memory is not back. */
export class UnloadFailed extends Schema.TaggedError<UnloadFailed>()("UnloadFailed", {
  model: Schema.String,
  /** Bytes that its process still holds. */
  heldBytes: Schema.Finite,
}) {}

/** The key of another request: method, address and body have to be the same for its answer to be given again. */
export class IdempotencyKeyReused extends Schema.TaggedError<IdempotencyKeyReused>()(
  "IdempotencyKeyReused",
  {},
) {}

/** The first request with this key is still being answered. */
export class IdempotentPending extends Schema.TaggedError<IdempotentPending>()("IdempotentPending", {
  retryAfterMs: Schema.Finite,
}) {}

/** The request was answered before, with more than is kept. */
export class IdempotentAnswerLost extends Schema.TaggedError<IdempotentAnswerLost>()(
  "IdempotentAnswerLost",
  {},
) {}

/** The node is draining and takes no new work. */
export class Draining extends Schema.TaggedError<Draining>()("Draining", {}) {}

/** The engine that was serving the request failed, died or stopped answering. */
export class EngineFailed extends Schema.TaggedError<EngineFailed>()("EngineFailed", {
  model: Schema.String,
  reason: Schema.Literals(["failed", "crashed", "hung", "unloaded", "protocol"]),
  detail: Schema.String,
}) {}

/** The text to speak is longer than the model takes, after clean-up; `maxCharacters` in Unicode code points. */
export class InputTooLong extends Schema.TaggedError<InputTooLong>()("InputTooLong", {
  model: Schema.String,
  maxCharacters: Schema.Int,
}) {}

/** Synthesis failed before its first audio: an unknown voice, nothing to pronounce, or the engine's own failure. */
export class SynthesisFailed extends Schema.TaggedError<SynthesisFailed>()("SynthesisFailed", {
  model: Schema.String,
  detail: Schema.String,
  /** The voices that the model has, where it does not have the one asked for. */
  voices: Schema.optionalKey(Schema.Array(Schema.String)),
}) {}

/** An uploaded file exceeds its cap, in bytes. */
export class FileTooLarge extends Schema.TaggedError<FileTooLarge>()("FileTooLarge", {
  limitBytes: Schema.Int,
}) {}

/** No job of that id that the caller may see. */
export class JobNotFound extends Schema.TaggedError<JobNotFound>()("JobNotFound", {
  jobId: Schema.String,
}) {}

/** Models are serving requests, and nobody said to unload them all the same. */
export class ModelBusy extends Schema.TaggedError<ModelBusy>()("ModelBusy", {
  models: Schema.Array(Schema.String),
}) {}
