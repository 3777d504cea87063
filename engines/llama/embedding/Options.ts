// The options of the `llama-embedding` adapter in a catalog entry. Decoded once, when a model is loaded.
import * as Schema from "effect/Schema"
import { integerFrom, withDefault } from "#domain/models/EntrySchemas.ts"
import { LlamaOptions } from "../Options.ts"

const { gpu, gpuLayers } = LlamaOptions.fields

export const EmbeddingOptions = Schema.Struct({
  gpu,
  gpuLayers,
  /** If absent: the library decides. Without it, the memory of an evaluation grows with the square of its tokens. */
  flashAttention: Schema.optionalKey(Schema.Boolean),
  /** Tokens of one input; at most what the model was trained for. Default 2048. */
  contextTokens: withDefault(integerFrom(8, 32_768), 2048),
  /**
   * Tokens of one native evaluation, in which several inputs of several requests may be. A longer input is evaluated alone.
   * Default 512, as for text.
   */
  batchTokens: withDefault(integerFrom(16, 8192), 512),
  /** Requests whose inputs are evaluated side by side. */
  slots: withDefault(integerFrom(1, 64), 8),
  /** How the vectors of an input's tokens become one. Needed only if the file does not say it. */
  pooling: Schema.optionalKey(Schema.Literals(["mean", "cls", "last"])),
})

export type EmbeddingOptions = typeof EmbeddingOptions.Type
