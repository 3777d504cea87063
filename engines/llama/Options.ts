// The options of the `llama-gguf` adapter in a catalog entry. Decoded once, when a model is loaded.
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { integerFrom, withDefault } from "#domain/models/EntrySchemas.ts"
import { type EngineError, loadFailed } from "../protocol/Engine.ts"

export const LlamaOptions = Schema.Struct({
  /** Tokens of one sequence, prompt and reply together; at most what the model was trained for. Default 8192 (protocol 17.3). */
  contextTokens: withDefault(integerFrom(32, 1_048_576), 8192),
  /** Sequences that are decoded side by side. 16: the concurrent streams of the benches. */
  slots: withDefault(integerFrom(1, 256), 16),
  /** Where the layers run. Default `off`: the operator decides whether a GPU is used. */
  gpu: withDefault(Schema.Literals(["off", "auto", "cuda", "vulkan", "metal"]), "off"),
  /** Layers on the GPU: `auto` as many as fit, `max` all, or a number. */
  gpuLayers: withDefault(Schema.Union([Schema.Literals(["auto", "max"]), integerFrom(0, 10_000)]), "auto"),
  /**
   * If absent: the library's choice on a GPU, off on the CPU. On the CPU it makes prompts 1.8 times faster and
   * replies 4 times slower (built-in model, 1200 and 6000 tokens of context, one thread, 2026-11).
   */
  flashAttention: Schema.optionalKey(Schema.Boolean),
  /** Tokens of one native evaluation. Default 512: the default of llama.cpp and node-llama-cpp. */
  batchTokens: withDefault(integerFrom(16, 8192), 512),
  /**
   * Share of the time for prompts while replies run, see PromptPace. With 2/3, gaps between a reply's tokens become 3 times
   * as long, and a prompt's first token comes after 1.5 times its time alone, if small calls cost as much a token as large ones.
   */
  promptShare: withDefault(Schema.Number.check(Schema.isBetween({ minimum: 0.1, maximum: 0.95 })), 2 / 3),
  /**
   * Bound of the saved states: checkpoints of all sequences, for models that need them, and shared prompts. A guess: a few states
   * of a 9B hybrid model.
   */
  checkpointMegabytes: withDefault(integerFrom(0, 65_536), 512),
  /**
   * System messages that any organization may find evaluated already. Without them, an organization reuses only what it sent
   * itself.
   */
  sharedPrompts: withDefault(Schema.Array(Schema.NonEmptyString).check(Schema.isMaxLength(16)), []),
  /** Bound of the rows of pictures that are kept for later requests. A guess: 2 to 50 pictures, by the model. */
  pictureMegabytes: withDefault(integerFrom(0, 65_536), 128),
})

export type LlamaOptions = typeof LlamaOptions.Type

/** Types of towers (`clip.projector_type` of an mmproj file) that are computed. */
export const projectors = ["idefics3", "mlp", "qwen3vl_merger"] as const

const mebibyte = 1024 * 1024

/** Bound of the rows of pictures that are kept, by the options of a catalog entry; 0 if they cannot be decoded. */
export const pictureCacheBytes = (options: unknown): number =>
  Option.match(Schema.decodeUnknownOption(LlamaOptions)(options ?? {}), {
    onNone: () => 0,
    onSome: ({ pictureMegabytes }) => pictureMegabytes * mebibyte,
  })

/** Raises `batchTokens` so that a batch can hold one token of every sequence and as many prompt tokens. */
const withBatchSpace = (options: LlamaOptions): LlamaOptions => ({
  ...options,
  batchTokens: Math.max(options.batchTokens, 2 * options.slots),
})

export const decodeOptions = (options: unknown): Effect.Effect<LlamaOptions, EngineError> =>
  Schema.decodeUnknownEffect(LlamaOptions)(options).pipe(
    Effect.map(withBatchSpace),
    Effect.mapError((error) => loadFailed("", `options: ${error.message}`)),
  )
