// The options of the `kokoro-onnx` adapter in a catalog entry. Decoded at a load; the gateway checks catalogs with the same schema,
// so nothing native is imported here.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { executionProvider } from "../shared/onnx/ExecutionProvider.ts"

/**
 * A call costs about 0.2 ms a symbol with the demonstration model on one idle core, 0.7 ms on a busy one: 200
 * symbols stay within 150 ms, and still hold two or three sentences, which keeps the melody of a paragraph.
 */
const DEFAULT_MAX_SYMBOLS = 200

const optional = <S extends Schema.Top>(schema: S, value: S["Type"]) =>
  schema.pipe(Schema.withDecodingDefaultTypeKey(Effect.succeed(value)))

export const SpeechOptions = Schema.Struct({
  ...executionProvider,
  /**
   * Requests that are interleaved; one of them computes at a time. As many as streams are ever admitted by the time that they
   * take: a stream that finds no slot is refused. Each holds its text and one piece of audio.
   */
  slots: optional(Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 64 })), 64),
  /** Samples a second of the graph's output. */
  rateHz: optional(Schema.Int.check(Schema.isBetween({ minimum: 8000, maximum: 48_000 })), 24_000),
  /** Symbols of the longest piece: smaller is fairer, larger keeps more melody. */
  maxSymbols: optional(
    Schema.Int.check(Schema.isBetween({ minimum: 20, maximum: 510 })),
    DEFAULT_MAX_SYMBOLS,
  ),
  /** Presets to load; without it, every file of the folder whose accent the front end knows. */
  voices: Schema.optionalKey(Schema.Array(Schema.String.check(Schema.isPattern(/^[\w-]+$/)))),
})
