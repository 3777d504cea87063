// The options of the `style-clone-onnx` adapter in a catalog entry. Decoded at a load. The gateway checks catalogs with
// the same schema, so nothing native is imported here.
import * as Schema from "effect/Schema"
import { integerFrom, withDefault } from "#domain/models/EntrySchemas.ts"
import { SpeechOptions } from "../kokoro/Options.ts"

export const CloneOptions = Schema.Struct({
  ...SpeechOptions.fields,
  /** Sample rate of the style encoder's input, Hz. */
  encoderHz: withDefault(integerFrom(8000, 48_000), 24_000),
})
