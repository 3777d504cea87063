// The options of the adapters without weights in a catalog entry. Decoded at a load; the gateway checks catalogs with the
// same schemas.
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"

const count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const slots = (fallback: number) =>
  Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(fallback)),
  )

export const FakeOptions = Schema.Struct({
  slots: slots(16),
  contextTokens: count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(8192))),
  /** How long loading takes, milliseconds. */
  loadMs: count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  /** What loading fails with, if it shall fail. */
  loadFailure: Schema.optionalKey(Schema.String),
  /** What it prints while it loads, `times` times. */
  print: Schema.optionalKey(
    Schema.Struct({
      stdout: Schema.optionalKey(Schema.String),
      stderr: Schema.optionalKey(Schema.String),
      times: Schema.optionalKey(count),
    }),
  ),
})

export const FakeSpeechOptions = Schema.Struct({
  slots: slots(64),
  voices: Schema.Array(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed(["fake"]))),
  languages: Schema.Array(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed(["en"]))),
  /** Takes reference clips, whose sound it ignores, and the voice `default`. */
  cloning: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  /** What it claims to have measured while loading, and to need for scripts that do not say. */
  realTimeFactor: Schema.optionalKey(Schema.Finite),
})

export const FakeTranscriptionOptions = Schema.Struct({
  slots: slots(4),
  /** Seconds of the longest piece that is decoded at once. */
  pieceSeconds: Schema.Finite.check(Schema.isBetween({ minimum: 0.5, maximum: 30 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(8)),
  ),
  /** Time that one call takes, milliseconds. */
  callMs: count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  /** Makes captions of at most so many seconds, each in so many milliseconds. */
  captions: Schema.optionalKey(
    Schema.Struct({
      seconds: Schema.Finite.check(Schema.isBetween({ minimum: 0.5, maximum: 30 })),
      callMs: count,
    }),
  ),
  languages: Schema.Array(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed(["en", "fr"]))),
  /** Whether certain sample values script a crash, a hang or a failure. */
  scripted: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true))),
  /** Said instead of made-up words. */
  words: Schema.optionalKey(Schema.NonEmptyArray(Schema.NonEmptyString)),
})
