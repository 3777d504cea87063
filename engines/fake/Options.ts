// The options of the adapters without weights in a catalog entry. Decoded at a load. The gateway checks catalogs with
// the same schemas.
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
  /** Takes pictures of at most this many pixels, and describes them where the prompt is no script. */
  pictures: Schema.optionalKey(Schema.Struct({ maxPixels: Schema.Int.check(Schema.isGreaterThan(0)) })),
  /** How probable the end of every user's message is, and how long it takes to say so. Absent: it cannot say. */
  messageEnd: Schema.optionalKey(
    Schema.Struct({
      probability: Schema.Finite.check(Schema.isBetween({ minimum: 1e-6, maximum: 1 })),
      tookMs: count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
      /** It takes so long whatever the request allows. */
      dawdles: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
      /** It fails instead. */
      fails: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
    }),
  ),
  /** Duration of a load in milliseconds. */
  loadMs: count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  /** The error text of a load that fails. */
  loadFailure: Schema.optionalKey(Schema.String),
  /** Text printed during the load, `times` times. */
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
  /** Accepts reference clips, whose sound it ignores, and the voice `default`. */
  cloning: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  /** The real-time factor that it reports, and that it uses for scripts without timing. */
  realTimeFactor: Schema.optionalKey(Schema.Finite),
})

export const FakeTranscriptionOptions = Schema.Struct({
  slots: slots(4),
  /** Seconds of the longest piece that is decoded at once. */
  pieceSeconds: Schema.Finite.check(Schema.isBetween({ minimum: 0.5, maximum: 30 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(8)),
  ),
  /** Milliseconds of one call. */
  callMs: count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
  /** Makes captions of at most this many seconds, each in this many milliseconds. */
  captions: Schema.optionalKey(
    Schema.Struct({
      seconds: Schema.Finite.check(Schema.isBetween({ minimum: 0.5, maximum: 30 })),
      callMs: count,
    }),
  ),
  languages: Schema.Array(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed(["en", "fr"]))),
  /** True if certain sample values cause a crash, a hang or a failure. */
  scripted: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(true))),
  /** Translates by writing capitals. */
  translates: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  /** Transcribed instead of made-up words. */
  words: Schema.optionalKey(Schema.NonEmptyArray(Schema.NonEmptyString)),
})

export const FakeEmbeddingOptions = Schema.Struct({
  slots: slots(8),
  contextTokens: count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(512))),
  dimensions: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 8192 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(64)),
  ),
  /** Milliseconds for each input. */
  callMs: count.pipe(Schema.withDecodingDefaultKey(Effect.succeed(0))),
})
