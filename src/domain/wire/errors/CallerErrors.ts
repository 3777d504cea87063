// Errors that refuse a request because of what it asks or who asks it.
import { Schema, Struct } from "effect"
import { type Failure, retryAfterMs } from "./Failure.ts"

/** A request that cannot be served as written. `field` names the parameter, `problem` what is wrong with it. */
export class InvalidRequest extends Schema.TaggedError<InvalidRequest>()("InvalidRequest", {
  field: Schema.String,
  problem: Schema.String,
}) {
  static readonly failure: Failure<InvalidRequest> = {
    status: 400,
    fault: "caller",
    retry: "no",
    when: "A field or parameter is missing or wrong; `detail` names it",
    detail: ({ field, problem }) => (field === "" ? problem : `${field}: ${problem}`),
    param: ({ field }) => field,
  }
}

/** The request body exceeds its cap, in bytes. */
export class BodyTooLarge extends Schema.TaggedError<BodyTooLarge>()("BodyTooLarge", {
  limitBytes: Schema.Int,
  /** True if the `data:` URLs of its pictures do not count. */
  besidesPictures: Schema.optionalKey(Schema.Boolean),
}) {
  static readonly failure: Failure<BodyTooLarge> = {
    status: 413,
    fault: "caller",
    retry: "no",
    when: "The body is larger than 8,000,000 bytes. For a model that takes pictures: larger than that besides its pictures, or than 32,000,000 bytes",
    detail: ({ besidesPictures, limitBytes }) =>
      `body: larger than ${limitBytes} bytes${besidesPictures === true ? " besides its pictures" : ""}`,
  }
}

/** The prompt does not fit the model's context window. Both counts are tokens of the model's own tokenizer. */
export class PromptTooLong extends Schema.TaggedError<PromptTooLong>()("PromptTooLong", {
  /** `messages`, `prompt` or `input[…]`; `tools` or `functions` if their definitions are most of the prompt. */
  field: Schema.String,
  promptTokens: Schema.Int,
  contextTokens: Schema.Int,
}) {
  static readonly failure: Failure<PromptTooLong> = {
    status: 400,
    fault: "caller",
    retry: "no",
    when: "The prompt leaves no token of the context for the reply",
    detail: ({ contextTokens, field, promptTokens }) =>
      `${field}: ${promptTokens} prompt tokens do not fit the model's context of ${contextTokens} tokens`,
    param: ({ field }) => field,
    code: "context_length_exceeded",
  }
}

const unauthorized = {
  missing: "Missing bearer token",
  "invalid-key": "Invalid API key",
  "invalid-secret": "Invalid client secret",
  "expired-secret": "Client secret has expired",
  "invalid-signature": "Invalid signature",
  "spent-secret": "Client secret has used its max_cost_usd; make another one",
  "secret-elsewhere": "Client secrets open /v1/realtime only",
  "invalid-operator": "Invalid operator token",
  "operator-elsewhere": "The operator token is for the operators' endpoints only",
  "malformed-token": "Invalid token: Not enough segments",
  "invalid-token": "Invalid token: Signature verification failed",
  "expired-token": "Token has expired",
  "wrong-algorithm": "Invalid token: Algorithm not allowed",
  "wrong-type": "Invalid token: Not a session token",
  "wrong-audience": "Invalid token: Invalid audience",
  "wrong-issuer": "Invalid token: Invalid issuer",
  "wrong-claims": "Invalid token: Missing or malformed claims",
  "premature-token": "Invalid token: Not yet valid",
} as const

/** What the sender of a credential can do, by the reason of the refusal. */
const adviceOf: Readonly<Partial<Record<string, string>>> = {
  missing: "Send an API key of this node; it begins with svc_",
  "malformed-token": "An API key of this node begins with svc_",
}

/** No bearer credential, or one that is not a known live key or a valid session token. */
export class Unauthorized extends Schema.TaggedError<Unauthorized>()("Unauthorized", {
  reason: Schema.Literals(Struct.keys(unauthorized)),
}) {
  static readonly failure: Failure<Unauthorized> = {
    status: 401,
    fault: "caller",
    retry: "no",
    when: "No credential, or one that is not valid",
    detail: ({ reason }) => unauthorized[reason],
    advice: ({ reason }) => adviceOf[reason],
    code: "invalid_api_key",
    headers: { "www-authenticate": { of: () => "Bearer" } },
  }
}

/** The organization has neither a payment method nor enough credit for the request. */
export class PaymentRequired extends Schema.TaggedError<PaymentRequired>()("PaymentRequired", {}) {
  static readonly failure: Failure<PaymentRequired> = {
    status: 402,
    fault: "caller",
    retry: "yes",
    when: "The organization has neither a payment method nor enough credit",
    detail: () => "Billing access denied",
    advice: () => "The organization needs credit or a payment method",
    code: "insufficient_quota",
  }
}

/** The credential lacks the scope that the endpoint asks for. */
export class Forbidden extends Schema.TaggedError<Forbidden>()("Forbidden", {
  scope: Schema.String,
}) {
  static readonly failure: Failure<Forbidden> = {
    status: 403,
    fault: "caller",
    retry: "no",
    when: "The credential lacks the scope that the endpoint needs",
    detail: ({ scope }) => `Requires the ${scope} scope`,
    advice: ({ scope }) => `Make a key with it: edgewise keys create --org NAME --scope ${scope}`,
  }
}

/**
 * The user passed one of the node's limits. `retryAfterMs`: milliseconds until a request would be admitted. `problem` states the limit
 * if it is not the number of requests. `field` names the part of the request that passed it, if only a part did.
 */
export class RateLimited extends Schema.TaggedError<RateLimited>()("RateLimited", {
  retryAfterMs: Schema.Finite,
  field: Schema.optionalKey(Schema.String),
  problem: Schema.optionalKey(Schema.String),
}) {
  static readonly failure: Failure<RateLimited> = {
    status: 429,
    fault: "caller",
    retry: "after",
    when: "The user or the address has made too many requests, or sent too many costly schemas, or more on sockets than could be read",
    detail: ({ field, problem = "Rate limit exceeded" }) =>
      field === undefined ? problem : `${field}: ${problem}`,
    advice: (error) => `Try again in ${Math.max(1, Math.ceil(retryAfterMs(error) / 1000))} s`,
    param: ({ field = "" }) => field,
    code: "rate_limit_exceeded",
    retryAfterMs,
  }
}

/** The idempotency key belongs to another request: one with another method, address or body. */
export class IdempotencyKeyReused extends Schema.TaggedError<IdempotencyKeyReused>()(
  "IdempotencyKeyReused",
  {},
) {
  static readonly failure: Failure<IdempotencyKeyReused> = {
    status: 422,
    fault: "caller",
    retry: "no",
    when: "`Idempotency-Key` was used before with another request",
    detail: () => "Idempotency-Key: was used before with another request",
  }
}

/** The first request with this key is still being answered. */
export class IdempotentPending extends Schema.TaggedError<IdempotentPending>()("IdempotentPending", {
  retryAfterMs: Schema.Finite,
}) {
  static readonly failure: Failure<IdempotentPending> = {
    status: 409,
    fault: "caller",
    retry: "after",
    when: "The first request with this `Idempotency-Key` is still being answered",
    detail: () => "Idempotency-Key: the first request with it is still being answered",
    retryAfterMs,
  }
}

/** The first answer for the idempotency key was too large to be kept. */
export class IdempotentAnswerLost extends Schema.TaggedError<IdempotentAnswerLost>()(
  "IdempotentAnswerLost",
  {},
) {
  static readonly failure: Failure<IdempotentAnswerLost> = {
    status: 409,
    fault: "caller",
    retry: "no",
    when: "The first answer for this `Idempotency-Key` was larger than is kept",
    detail: () => "Idempotency-Key: was answered before, with more than is kept",
  }
}

/** The text to speak is longer than the model takes, after clean-up; `maxCharacters` in Unicode code points. */
export class InputTooLong extends Schema.TaggedError<InputTooLong>()("InputTooLong", {
  model: Schema.String,
  maxCharacters: Schema.Int,
}) {
  static readonly failure: Failure<InputTooLong> = {
    status: 413,
    fault: "caller",
    retry: "no",
    when: "The text is longer than the model speaks; `detail` names the limit",
    detail: ({ maxCharacters, model }) => `input: ${model} speaks at most ${maxCharacters} characters`,
    param: () => "input",
  }
}

/** An uploaded file exceeds its cap, in bytes. */
export class FileTooLarge extends Schema.TaggedError<FileTooLarge>()("FileTooLarge", {
  limitBytes: Schema.Int,
}) {
  static readonly failure: Failure<FileTooLarge> = {
    status: 413,
    fault: "caller",
    retry: "no",
    when: "The file is larger than 100 MB",
    detail: ({ limitBytes }) =>
      `file: larger than ${limitBytes / 1024 / 1024} MB; split the audio into smaller files`,
    body: {
      schema: Schema.Struct({
        message: Schema.String,
        error: Schema.Struct({ message: Schema.String, type: Schema.String, code: Schema.String }),
      }),
      of: (_, message) => ({
        message,
        error: { message, type: "invalid_request_error", code: "file_too_large" },
      }),
    },
  }
}

/** No job of that id that the caller may see. */
export class JobNotFound extends Schema.TaggedError<JobNotFound>()("JobNotFound", {
  jobId: Schema.String,
}) {
  static readonly failure: Failure<JobNotFound> = {
    status: 404,
    fault: "caller",
    retry: "no",
    when: "No such job of the caller's organization",
    detail: () => "Job not found",
  }
}

/** No call of that id that the caller may see; or the node takes no calls. */
export class CallNotFound extends Schema.TaggedError<CallNotFound>()("CallNotFound", {
  isOff: Schema.Boolean,
}) {
  static readonly failure: Failure<CallNotFound> = {
    status: 404,
    fault: "caller",
    retry: "no",
    when: "No such open call of the caller's organization, or the node takes no calls",
    detail: ({ isOff }) => (isOff ? "This node takes no calls" : "Call not found"),
    advice: ({ isOff }) =>
      isOff
        ? "EDGEWISE_WEBRTC_PORT switches those of browsers on, EDGEWISE_TWILIO_TOKEN those of telephones; /v1/realtime is a WebSocket"
        : undefined,
  }
}

/** No organization, or no user of it, with the name in this field. The name is not repeated: answers are logged elsewhere. */
export class AccountNotFound extends Schema.TaggedError<AccountNotFound>()("AccountNotFound", {
  field: Schema.Literals(["org", "user"]),
}) {
  static readonly failure: Failure<AccountNotFound> = {
    status: 404,
    fault: "caller",
    retry: "no",
    when: "No organization, or no user of it, has this name",
    detail: ({ field }) =>
      field === "org"
        ? "org: no organization has this name"
        : "user: no user of the organization has this name",
    param: ({ field }) => field,
  }
}

/** Models are serving requests, and the operator did not ask to unload them in spite of that. */
export class ModelBusy extends Schema.TaggedError<ModelBusy>()("ModelBusy", {
  models: Schema.Array(Schema.String),
}) {
  static readonly failure: Failure<ModelBusy> = {
    status: 409,
    fault: "caller",
    retry: "yes",
    when: "Models are in use and `force` is not set",
    detail: ({ models }) => `force: models are in use: ${models.join(", ")}`,
  }
}

/** The catalog, or the regions file that it refers to, has mistakes. Nothing was changed. */
export class CatalogRefused extends Schema.TaggedError<CatalogRefused>()("CatalogRefused", {
  problem: Schema.String,
  mistakes: Schema.Array(Schema.String),
}) {
  static readonly failure: Failure<CatalogRefused> = {
    status: 400,
    fault: "caller",
    retry: "no",
    when: "The catalog has mistakes; nothing has changed",
    detail: ({ problem }) => problem,
    body: {
      schema: Schema.Struct({ detail: Schema.String, mistakes: Schema.Array(Schema.String) }),
      of: ({ mistakes }, detail) => ({ detail, mistakes }),
    },
  }
}
