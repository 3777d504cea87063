// The options of the `llama-gguf` adapter in a catalog entry. Decoded once, when a model is loaded.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { EngineError } from "../protocol/Engine.ts"

const between = (minimum: number, maximum: number) => Schema.Int.check(Schema.isBetween({ minimum, maximum }))

export const LlamaOptions = Schema.Struct({
  /** Tokens of one sequence, prompt and reply together; cut to what the model was trained for. 8192: the specification. */
  contextTokens: between(32, 1_048_576).pipe(Schema.withDecodingDefaultKey(Effect.succeed(8192))),
  /** Sequences that decode side by side. 16: the streams of one node that the benches use. */
  slots: between(1, 256).pipe(Schema.withDecodingDefaultKey(Effect.succeed(16))),
  /** Where the layers run. `off`: a GPU is the operator's decision. */
  gpu: Schema.Literals(["off", "auto", "cuda", "vulkan", "metal"]).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("off" as const)),
  ),
  /**
   * What evaluates and draws tokens: llama.cpp's C interface, of exactly the release that this version was written for, or
   * node-llama-cpp's own binding, which an operator's own build of another release needs.
   */
  native: Schema.Literals(["libllama", "addon"]).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("libllama" as const)),
  ),
  /** Layers on the GPU: as many as fit, all, or a number. */
  gpuLayers: Schema.Union([Schema.Literals(["auto", "max"]), between(0, 10_000)]).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("auto" as const)),
  ),
  /**
   * Without it: the library's choice on a GPU, off on the processor. There it makes prompts 1.8 times faster and
   * replies 4 times slower (built-in model, 1200 and 6000 tokens of context, one thread, 2026-11).
   */
  flashAttention: Schema.optionalKey(Schema.Boolean),
  /** Tokens of one native evaluation. 512: the library's and llama.cpp's default. */
  batchTokens: between(16, 8192).pipe(Schema.withDecodingDefaultKey(Effect.succeed(512))),
  /**
   * Of the time, for prompts while replies run: see PromptPace. 2/3: gaps between a reply's tokens become 3 times as
   * long, and a prompt's first token comes after 1.5 times its time alone, where small calls are as cheap as large ones.
   */
  promptShare: Schema.Number.check(Schema.isBetween({ minimum: 0.1, maximum: 0.95 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(2 / 3)),
  ),
  /** Memory for checkpoints of all sequences, for models that need them. A guess: a few states of a 9B hybrid. */
  checkpointMegabytes: between(0, 65_536).pipe(Schema.withDecodingDefaultKey(Effect.succeed(512))),
})

export type LlamaOptions = typeof LlamaOptions.Type

/** A batch has room for a token of every sequence and as many prompt tokens, however many sequences there are. */
const withRoom = (options: LlamaOptions): LlamaOptions => ({
  ...options,
  batchTokens: Math.max(options.batchTokens, 2 * options.slots),
})

export const decodeOptions = (options: unknown): Effect.Effect<LlamaOptions, EngineError> =>
  Schema.decodeUnknownEffect(LlamaOptions)(options).pipe(
    Effect.map(withRoom),
    Effect.mapError(
      (error) => new EngineError({ reason: "LoadFailed", field: "", detail: `options: ${error.message}` }),
    ),
  )
