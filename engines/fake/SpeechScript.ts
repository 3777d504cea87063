// The fake speech engine's behaviour for one request: a script, as plain data, inside the text. A text that starts with
// `fake:` followed by JSON is a script; any other text gets the defaults. A script has no character that the gateway's
// text clean-up removes as markdown.
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { withDefault } from "#domain/models/EntrySchemas.ts"
import { count } from "./Options.ts"

export const SpeechScript = Schema.Struct({
  /** Number of pieces. */
  pieces: withDefault(count, 3),
  /** Samples of one piece at speed 1; a list is repeated in order. */
  samples: withDefault(Schema.Union([count, Schema.NonEmptyArray(count)]), 4_800),
  /** Milliseconds that one piece takes to compute; one piece computes at a time, as in the real engines. */
  pieceMs: withDefault(count, 0),
  /** Milliseconds that it reports for a piece, if not `pieceMs`. */
  claimedMs: Schema.optionalKey(count),
  /** Seed of the noise. */
  seed: withDefault(count, 1),
  /** The request field that is refused before the reply begins. */
  refuse: Schema.optionalKey(Schema.String),
  /** Piece index before which the request fails with a typed error. */
  failAt: Schema.optionalKey(count),
  /** Piece index before which the process dies as by a fault in native code (SIGSEGV). */
  crashAt: Schema.optionalKey(count),
  /** Piece index before which the engine blocks its event loop for ever. */
  hangAt: Schema.optionalKey(count),
})
export type SpeechScript = typeof SpeechScript.Type

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(SpeechScript))
const defaults = Option.getOrThrow(decode("{}"))

/** The script inside a text, or the defaults. */
export const speechScriptOf = (text: string): SpeechScript =>
  text.startsWith("fake:") ? Option.getOrElse(decode(text.slice("fake:".length)), () => defaults) : defaults

/**
 * Piece `index` of a script at a speed: noise that differs in every piece, s16 mono, deterministic. Tests compute a
 * whole reply from it.
 */
export const pieceSamples = (script: SpeechScript, index: number, speed: number): Int16Array => {
  const length =
    typeof script.samples === "number" ? script.samples : script.samples[index % script.samples.length]!
  const piece = new Int16Array(Math.round(length / speed))
  let state = (script.seed * 7_919 + index * 104_729 + 1) >>> 0
  for (let i = 0; i < piece.length; i++) {
    // Numerical Recipes' linear congruential generator; its high bits are random enough for noise.
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    piece[i] = (state >> 18) & 0x3fff
  }
  return piece
}
