// The options of the `cohere-hf-onnx` adapter in a catalog entry. Decoded at a load. The gateway checks catalogs with
// the same schema, so nothing native is imported here.
import * as Schema from "effect/Schema"
import { integerFrom, withDefault } from "#domain/models/EntrySchemas.ts"
import { executionProvider } from "../shared/onnx/ExecutionProvider.ts"

export const CohereOptions = Schema.Struct({
  ...executionProvider,
  /** Requests that are decoded side by side, interleaved. A guess: each holds the encoder keys and values. */
  slots: withDefault(integerFrom(1, 64), 4),
  /** Most tokens of prompt and output together: the published decoder's positions. */
  maxPositions: withDefault(integerFrom(16, 65_536), 1024),
})
