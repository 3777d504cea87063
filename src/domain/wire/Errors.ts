// Every expected failure of the product (protocol 3.2). Errors carry facts; api/ErrorBody decides status, headers and
// body. Code branches on the tag, never on message text.
import { Schema } from "effect"

/** A request that cannot be served as written. `field` names the parameter, `problem` says what is wrong with it. */
export class InvalidRequest extends Schema.TaggedError<InvalidRequest>()("InvalidRequest", {
  field: Schema.String,
  problem: Schema.String,
}) {}

/** The request body exceeds its limit, in bytes. */
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

/** No bearer credential, or one that is neither a live key nor a valid session token. */
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

/** Session tokens cannot be checked at present, because their public keys cannot be fetched. */
export class AuthUnavailable extends Schema.TaggedError<AuthUnavailable>()("AuthUnavailable", {
  retryAfterMs: Schema.Finite,
}) {}

/** Accounts, receipts and jobs cannot be read or written at present. */
export class StoreDown extends Schema.TaggedError<StoreDown>()("StoreDown", {
  retryAfterMs: Schema.Finite,
}) {}

/** The organization has neither a payment method nor enough credit for the request. */
export class PaymentRequired extends Schema.TaggedError<PaymentRequired>()("PaymentRequired", {}) {}

/** The credential lacks the scope that the endpoint requires. */
export class Forbidden extends Schema.TaggedError<Forbidden>()("Forbidden", {
  scope: Schema.String,
}) {}

/** The user exceeded the node's rate limit. The next request is admitted after `retryAfterMs`. */
export class RateLimited extends Schema.TaggedError<RateLimited>()("RateLimited", {
  retryAfterMs: Schema.Finite,
}) {}

/** The model is not deployed on this node, or an operator has unloaded it. */
export class ModelNotLoaded extends Schema.TaggedError<ModelNotLoaded>()("ModelNotLoaded", {
  model: Schema.String,
}) {}

/** The model's queue is full. */
export class AtCapacity extends Schema.TaggedError<AtCapacity>()("AtCapacity", {
  model: Schema.String,
  retryAfterMs: Schema.Finite,
}) {}

/** The model is deployed but cannot serve requests at present: its engine failed to load or crashed too often. */
export class ModelUnavailable extends Schema.TaggedError<ModelUnavailable>()("ModelUnavailable", {
  model: Schema.String,
  retryAfterMs: Schema.Finite,
}) {}

/** A device lacks the memory that a model needs. Nothing was allocated. */
export class InsufficientMemory extends Schema.TaggedError<InsufficientMemory>()("InsufficientMemory", {
  model: Schema.String,
  /** The device's name. */
  device: Schema.String,
  wantedBytes: Schema.Finite,
  freeBytes: Schema.Finite,
  retryAfterMs: Schema.Finite,
}) {}

/** The node's memory is nearly full: new work of this kind is refused until some of it is free again. */
export class MemoryPressure extends Schema.TaggedError<MemoryPressure>()("MemoryPressure", {
  retryAfterMs: Schema.Finite,
}) {}

/** A model's process did not end, so its memory is not free. */
export class UnloadFailed extends Schema.TaggedError<UnloadFailed>()("UnloadFailed", {
  model: Schema.String,
  /** Bytes that its process still holds. */
  heldBytes: Schema.Finite,
}) {}

/** The key was used with another request: method, address and body must be the same. */
export class IdempotencyKeyReused extends Schema.TaggedError<IdempotencyKeyReused>()(
  "IdempotencyKeyReused",
  {},
) {}

/** The first request with this key is still being answered. */
export class IdempotentPending extends Schema.TaggedError<IdempotentPending>()("IdempotentPending", {
  retryAfterMs: Schema.Finite,
}) {}

/** The request was answered before, with a larger answer than is kept. */
export class IdempotentAnswerLost extends Schema.TaggedError<IdempotentAnswerLost>()(
  "IdempotentAnswerLost",
  {},
) {}

/** The node is draining and accepts no new work. */
export class Draining extends Schema.TaggedError<Draining>()("Draining", {}) {}

/** The engine failed, crashed or stopped responding while it served the request. */
export class EngineFailed extends Schema.TaggedError<EngineFailed>()("EngineFailed", {
  model: Schema.String,
  reason: Schema.Literals(["failed", "crashed", "hung", "unloaded", "protocol"]),
  detail: Schema.String,
}) {}

/** The text to speak is longer than the model's limit after clean-up; `maxCharacters` in Unicode code points. */
export class InputTooLong extends Schema.TaggedError<InputTooLong>()("InputTooLong", {
  model: Schema.String,
  maxCharacters: Schema.Int,
}) {}

/** Synthesis failed before its first audio: an unknown voice, nothing to pronounce, or a failure of the engine. */
export class SynthesisFailed extends Schema.TaggedError<SynthesisFailed>()("SynthesisFailed", {
  model: Schema.String,
  detail: Schema.String,
  /** The model's voices, if the requested one is unknown. */
  voices: Schema.optionalKey(Schema.Array(Schema.String)),
}) {}

/** An uploaded file exceeds its limit, in bytes. */
export class FileTooLarge extends Schema.TaggedError<FileTooLarge>()("FileTooLarge", {
  limitBytes: Schema.Int,
}) {}

/** No job of this id that the caller may read. */
export class JobNotFound extends Schema.TaggedError<JobNotFound>()("JobNotFound", {
  jobId: Schema.String,
}) {}

/** Models are serving requests, and the request did not force their unloading. */
export class ModelBusy extends Schema.TaggedError<ModelBusy>()("ModelBusy", {
  models: Schema.Array(Schema.String),
}) {}
