// What the fake engine shall do for one request: a script, as plain data, taken from the prompt itself.
// A prompt whose last turn starts with `fake:` followed by JSON is a script; any other prompt is answered with the
// defaults. This makes timings and failures a property of the request, so tests and benches need no side door.
import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { withoutReplacement } from "../shared/text/Utf8Holdback.ts"

const count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const withDefault = <A>(schema: Schema.Codec<A, A>, value: A) =>
  schema.pipe(Schema.withDecodingDefaultKey(Effect.succeed(value)))

export const FakeScript = Schema.Struct({
  /** Units to produce unless maxTokens ends it earlier. */
  tokens: withDefault(count, 16),
  /** Text of one unit; `text` given as a list is cycled through. */
  text: withDefault(Schema.Union([Schema.String, Schema.NonEmptyArray(Schema.String)]), " token"),
  /** Milliseconds between decode steps; 0 is as fast as the event loop turns. */
  tokenMs: withDefault(count, 0),
  /** Milliseconds before the first unit, per request. */
  prefillMs: withDefault(count, 0),
  /** Milliseconds that the event loop blocks before the first unit, announced as the opening of files. */
  openingMs: withDefault(count, 0),
  /** Unit index before which the request fails with a typed error. */
  failAt: Schema.optionalKey(count),
  /** Unit index before which the process ends as by a fault in native code (SIGSEGV). */
  crashAt: Schema.optionalKey(count),
  /** Unit index before which the engine stops answering at all (its event loop blocks). */
  hangAt: Schema.optionalKey(count),
})
export type FakeScript = typeof FakeScript.Type

const decode = Schema.decodeUnknownOption(Schema.fromJsonString(FakeScript))
const defaults = Option.getOrThrow(decode("{}"))

/** The script inside a prompt, or the defaults. */
export const scriptOf = (prompt: string): FakeScript =>
  prompt.startsWith("fake:")
    ? Option.getOrElse(decode(prompt.slice("fake:".length)), () => defaults)
    : defaults

/** Whole characters only, as from every engine: lone surrogates and U+FFFD are dropped. */
export const unitText = (script: FakeScript, index: number): string => {
  const text = typeof script.text === "string" ? script.text : script.text[index % script.text.length]!
  return withoutReplacement(text.toWellFormed())
}
