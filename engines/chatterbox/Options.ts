// The options of the `chatterbox-onnx` adapter in a catalog entry. Decoded at a load. The gateway checks catalogs with
// the same schema, so nothing native is imported here.
import * as Schema from "effect/Schema"
import { integerFrom, numberFrom, withDefault } from "#domain/models/EntrySchemas.ts"
import { executionProvider } from "../shared/onnx/ExecutionProvider.ts"

export const ChatterboxOptions = Schema.Struct({
  ...executionProvider,
  /** Requests that are interleaved; one of them computes at a time. */
  slots: withDefault(integerFrom(1, 64), 4),
  /** Defaults as published: exaggeration and guidance by the reference implementation, the penalty by the ONNX example. */
  exaggeration: withDefault(numberFrom(0, 2), 0.5),
  guidance: withDefault(numberFrom(0, 3), 0.5),
  repetitionPenalty: withDefault(numberFrom(1, 5), 1.2),
  /** True if equal requests must give equal bytes. */
  repeatable: withDefault(Schema.Boolean, true),
})
