// Errors that are the node's: it cannot serve the request now, or failed while it did.
import { Schema } from "effect"
import { type Failure, retryAfterMs } from "./Failure.ts"

/** Names for a sentence. At most 20, so that a long catalog does not make a long answer. */
const listed = (names: ReadonlyArray<string>): string =>
  names.length > 20 ? `${names.slice(0, 20).join(", ")} and ${names.length - 20} more` : names.join(", ")

const gigabytes = (bytes: number): string => (bytes / 1024 ** 3).toFixed(2)

/** A header of at most 2 KB. Left out: names that need other characters than visible ASCII, and those beyond 2 KB. */
const voiceList = (voices: ReadonlyArray<string> = []): string | undefined => {
  let list = ""
  for (const voice of voices) {
    if (!/^[\x21-\x2b\x2d-\x7e]+$/.test(voice) || list.length + voice.length > 2_000) continue
    list += list === "" ? voice : `, ${voice}`
  }
  return list === "" ? undefined : list
}

/** Session tokens cannot be checked: the keys that sign them cannot be fetched. */
export class AuthUnavailable extends Schema.TaggedError<AuthUnavailable>()("AuthUnavailable", {
  retryAfterMs: Schema.Finite,
}) {
  static readonly failure: Failure<AuthUnavailable> = {
    status: 503,
    fault: "node",
    retry: "after",
    when: "Session tokens cannot be checked; API keys work",
    detail: () => "Session tokens cannot be checked",
    retryAfterMs,
  }
}

/** Accounts, receipts and jobs cannot be read or written now. */
export class StoreDown extends Schema.TaggedError<StoreDown>()("StoreDown", {
  retryAfterMs: Schema.Finite,
}) {
  static readonly failure: Failure<StoreDown> = {
    status: 503,
    fault: "node",
    retry: "after",
    when: "Accounts, receipts and jobs cannot be read or written",
    detail: () => "Store is unavailable",
    retryAfterMs,
  }
}

/** The model is not deployed on this node, or an operator has unloaded it. */
export class ModelNotLoaded extends Schema.TaggedError<ModelNotLoaded>()("ModelNotLoaded", {
  model: Schema.String,
  /** The models of the wanted kind that are deployed, where none has the requested name. */
  deployed: Schema.optionalKey(Schema.Array(Schema.String)),
}) {
  static readonly failure: Failure<ModelNotLoaded> = {
    status: 404,
    fault: "node",
    retry: "yes",
    when: "The model is not deployed on this node, or an operator has unloaded it",
    detail: () => "Model not loaded",
    advice: ({ deployed = [] }) => (deployed.length === 0 ? undefined : `This node has: ${listed(deployed)}`),
    param: () => "model",
    code: "model_not_found",
  }
}

/** The model's queue, or another bounded part of the node, is full. */
export class AtCapacity extends Schema.TaggedError<AtCapacity>()("AtCapacity", {
  model: Schema.String,
  retryAfterMs: Schema.Finite,
}) {
  static readonly failure: Failure<AtCapacity> = {
    status: 503,
    fault: "node",
    retry: "after",
    when: "A queue, the decoders, the jobs or the engine's time for streams are full",
    detail: () => "Model is at capacity",
    retryAfterMs,
  }
}

/** The model is deployed but cannot answer now: its engine failed to load or crashed too often. */
export class ModelUnavailable extends Schema.TaggedError<ModelUnavailable>()("ModelUnavailable", {
  model: Schema.String,
  retryAfterMs: Schema.Finite,
  /** Why it failed to load. For operators only. */
  reason: Schema.optionalKey(Schema.String),
}) {
  static readonly failure: Failure<ModelUnavailable> = {
    status: 503,
    fault: "node",
    retry: "after",
    when: "The engine failed to load or crashed too often",
    detail: ({ reason }) => `Model is unavailable${reason === undefined ? "" : `: ${reason}`}`,
    retryAfterMs,
  }
}

/** A device does not have the memory that a model needs. Nothing was allocated. */
export class InsufficientMemory extends Schema.TaggedError<InsufficientMemory>()("InsufficientMemory", {
  model: Schema.String,
  /** The device's name. */
  device: Schema.String,
  wantedBytes: Schema.Finite,
  freeBytes: Schema.Finite,
  retryAfterMs: Schema.Finite,
}) {
  static readonly failure: Failure<InsufficientMemory> = {
    status: 503,
    fault: "node",
    retry: "after",
    when: "The model does not fit into the memory that is free",
    detail: ({ device, freeBytes, model, wantedBytes }) =>
      `Not enough memory: ${model} needs ${gigabytes(wantedBytes)} GB, ` +
      `${gigabytes(Math.max(0, freeBytes))} GB are free on ${device}`,
    retryAfterMs,
  }
}

/** The node's memory is nearly full: no new work of this kind until some of it is free again. */
export class MemoryPressure extends Schema.TaggedError<MemoryPressure>()("MemoryPressure", {
  retryAfterMs: Schema.Finite,
}) {
  static readonly failure: Failure<MemoryPressure> = {
    status: 503,
    fault: "node",
    retry: "after",
    when: "The node's memory is nearly full; it takes no new work of this kind",
    detail: () => "The node's memory is nearly full",
    retryAfterMs,
  }
}

/** A model's process did not end, so its memory is not free. */
export class UnloadFailed extends Schema.TaggedError<UnloadFailed>()("UnloadFailed", {
  model: Schema.String,
  /** Bytes that its process still holds. */
  heldBytes: Schema.Finite,
}) {
  static readonly failure: Failure<UnloadFailed> = {
    status: 500,
    fault: "node",
    retry: "yes",
    when: "The model's process has not ended and still holds memory",
    detail: ({ heldBytes, model }) =>
      `${model} is not unloaded: its process still holds ${gigabytes(heldBytes)} GB`,
    body: {
      schema: Schema.Struct({
        status: Schema.Literal("failed"),
        model: Schema.String,
        message: Schema.String,
        detail: Schema.String,
      }),
      of: ({ model }, detail) => ({ status: "failed", model, message: detail, detail }),
    },
  }
}

/** The node is draining and takes no new work. */
export class Draining extends Schema.TaggedError<Draining>()("Draining", {}) {
  static readonly failure: Failure<Draining> = {
    status: 503,
    fault: "node",
    retry: "after",
    when: "The node is stopping and takes no new work",
    detail: () => "Server is shutting down",
    retryAfterMs: () => 1_000,
  }
}

const engineFailed = {
  failed: "The model failed to produce an answer",
  crashed: "The model's engine stopped unexpectedly",
  hung: "The model's engine stopped responding",
  unloaded: "The model was unloaded",
  protocol: "The model's engine misbehaved",
} as const

/** The engine that was serving the request failed, died or stopped answering. */
export class EngineFailed extends Schema.TaggedError<EngineFailed>()("EngineFailed", {
  model: Schema.String,
  reason: Schema.Literals(["failed", "crashed", "hung", "unloaded", "protocol"]),
  detail: Schema.String,
}) {
  static readonly failure: Failure<EngineFailed> = {
    status: 500,
    fault: "node",
    retry: "yes",
    when: "The model's engine failed while it served the request",
    detail: ({ reason }) => engineFailed[reason],
  }
}

/** Synthesis failed before its first audio: an unknown voice, nothing to pronounce, or the engine's own failure. */
export class SynthesisFailed extends Schema.TaggedError<SynthesisFailed>()("SynthesisFailed", {
  model: Schema.String,
  detail: Schema.String,
  /** The field that the engine refused; absent where it failed itself. */
  field: Schema.optionalKey(Schema.String),
  /** The voices that the model has, where it does not have the one asked for. */
  voices: Schema.optionalKey(Schema.Array(Schema.String)),
}) {
  static readonly failure: Failure<SynthesisFailed> = {
    status: 502,
    fault: "node",
    retry: "yes",
    when: "Speech failed before its first audio. For an unknown voice the header `X-Available-Voices` lists those of the model",
    detail: () => "TTS backend error",
    headers: { "x-available-voices": { of: ({ voices }) => voiceList(voices) } },
    advice: ({ model, voices }) =>
      voices === undefined ? undefined : `${model} has no such voice; it has: ${listed(voices)}`,
    param: ({ field, voices }) => field ?? (voices === undefined ? "" : "voice"),
  }
}

/** The request needs a part of the node that its operator has not installed. */
export class NotInstalled extends Schema.TaggedError<NotInstalled>()("NotInstalled", {
  model: Schema.String,
  /** The part with its article, e.g. `an audio decoder`. */
  part: Schema.String,
}) {
  static readonly failure: Failure<NotInstalled> = {
    status: 501,
    fault: "node",
    retry: "no",
    when: "The node is installed without the audio decoder, the picture decoder or the text front end that the request needs",
    detail: ({ model, part }) => `${model} needs ${part}, which is not installed on this node`,
  }
}

/** None of the router's regions answers its health check. */
export class NoHealthyRegion extends Schema.TaggedError<NoHealthyRegion>()("NoHealthyRegion", {}) {
  static readonly failure: Failure<NoHealthyRegion> = {
    status: 503,
    fault: "node",
    retry: "after",
    when: "No region answers its health check",
    detail: () => "No healthy region",
    // Regions are probed about that often. A guess.
    retryAfterMs: () => 5_000,
  }
}
