// The options of the `whisper-hf-onnx` adapter in a catalog entry. Decoded at a load. The gateway checks catalogs with
// the same schema, so nothing native is imported here.
import * as Schema from "effect/Schema"
import { integerFrom, numberFrom, withDefault } from "#domain/models/EntrySchemas.ts"
import { executionProvider } from "../shared/onnx/ExecutionProvider.ts"

export const WhisperOptions = Schema.Struct({
  ...executionProvider,
  /** Requests that are decoded side by side, interleaved. A guess: each holds the encoder keys and values. */
  slots: withDefault(integerFrom(1, 64), 4),
  /**
   * True for encoders that were trained on audio of any length: short audio is not padded to 30 s. False for the
   * published weights, whose graphs take 3000 frames.
   */
  variableLength: withDefault(Schema.Boolean, false),
  /**
   * Seconds of the longest piece that is decoded at once; longer windows are cut at their quietest place. Absent
   * for the published weights: they decode whole windows, and the seek rule finds where the next one starts. For models
   * that were not trained to leave a sentence open at the end of a window.
   */
  pieceSeconds: Schema.optionalKey(numberFrom(6, 30)),
  /**
   * Language codes that are accepted besides the model's own and decoded as its first language. For demonstration weights,
   * which know one language and replace models that know many.
   */
  acceptLanguages: withDefault(Schema.Array(Schema.NonEmptyString), []),
})
