// The options of the `cohere-hf-onnx` adapter in a catalog entry. Decoded at a load. The gateway checks catalogs with
// the same schema, so nothing native is imported here.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { executionProvider } from "../shared/onnx/ExecutionProvider.ts"

export const CohereOptions = Schema.Struct({
  ...executionProvider,
  /** Requests that are decoded side by side, interleaved. A guess: each holds the encoder keys and values. */
  slots: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 64 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(4)),
  ),
  /** Most tokens of prompt and output together: the published decoder's positions. */
  maxPositions: Schema.Int.check(Schema.isBetween({ minimum: 16, maximum: 65_536 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(1024)),
  ),
})
