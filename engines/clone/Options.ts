// The options of the `style-clone-onnx` adapter in a catalog entry. Decoded at a load. The gateway checks catalogs with
// the same schema, so nothing native is imported here.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { SpeechOptions } from "../kokoro/Options.ts"

export const CloneOptions = Schema.Struct({
  ...SpeechOptions.fields,
  /** Sample rate of the style encoder's input, Hz. */
  encoderHz: Schema.Int.check(Schema.isBetween({ minimum: 8000, maximum: 48_000 })).pipe(
    Schema.withDecodingDefaultTypeKey(Effect.succeed(24_000)),
  ),
  /** "english": sounds that English lacks are replaced by their neighbours. */
  training: Schema.Literals(["table", "english"]).pipe(
    Schema.withDecodingDefaultTypeKey(Effect.succeed("table" as const)),
  ),
})
