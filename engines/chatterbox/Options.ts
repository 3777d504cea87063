// The options of the `chatterbox-onnx` adapter in a catalog entry. Decoded at a load. The gateway checks catalogs with
// the same schema, so nothing native is imported here.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { executionProvider } from "../shared/onnx/ExecutionProvider.ts"

const between = (minimum: number, maximum: number, fallback: number) =>
  Schema.Finite.check(Schema.isBetween({ minimum, maximum })).pipe(
    Schema.withDecodingDefaultTypeKey(Effect.succeed(fallback)),
  )

export const ChatterboxOptions = Schema.Struct({
  ...executionProvider,
  /** Requests that are interleaved; one of them computes at a time. */
  slots: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 64 })).pipe(
    Schema.withDecodingDefaultTypeKey(Effect.succeed(4)),
  ),
  /** Defaults as published: exaggeration and guidance by the reference implementation, the penalty by the ONNX example. */
  exaggeration: between(0, 2, 0.5),
  guidance: between(0, 3, 0.5),
  repetitionPenalty: between(1, 5, 1.2),
  /** True if equal requests must give equal bytes. */
  repeatable: Schema.Boolean.pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed(true))),
})
