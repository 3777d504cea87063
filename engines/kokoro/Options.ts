// The options of the `kokoro-onnx` adapter in a catalog entry. Decoded at a load. The gateway checks catalogs with the
// same schema, so nothing native is imported here.
import * as Schema from "effect/Schema"
import { integerFrom, withDefault } from "#domain/models/EntrySchemas.ts"
import { executionProvider } from "../shared/onnx/ExecutionProvider.ts"

/**
 * A call takes about 0.2 ms a symbol with the demonstration model on one idle core, 0.7 ms on a busy one: 200
 * symbols stay below 150 ms, and contain two or three sentences, which keeps the intonation of a paragraph.
 */
const defaultMaxSymbols = 200

export const SpeechOptions = Schema.Struct({
  ...executionProvider,
  /**
   * Requests that are interleaved; one of them computes at a time. At least as many as the streams that admission by
   * computing time ever allows, because a stream that finds no slot is refused. Each holds its text and one piece of audio.
   */
  slots: withDefault(integerFrom(1, 64), 64),
  /** Sample rate of the graph's output, Hz. */
  rateHz: withDefault(integerFrom(8000, 48_000), 24_000),
  /** Most symbols of a piece: smaller is fairer between requests, larger keeps more intonation. */
  maxSymbols: withDefault(integerFrom(20, 510), defaultMaxSymbols),
  /** Preset voices to load; if absent, every file of the folder whose accent the front end supports. */
  voices: Schema.optionalKey(Schema.Array(Schema.String.check(Schema.isPattern(/^[\w-]+$/)))),
})
