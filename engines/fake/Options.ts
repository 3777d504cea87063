// The options of the adapters without weights in a catalog entry. Decoded at a load. The gateway checks catalogs with
// the same schemas.
import * as Schema from "effect/Schema"
import { integerFrom, numberFrom, withDefault } from "#domain/models/EntrySchemas.ts"

export const count = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))
const slots = (fallback: number) => withDefault(integerFrom(1, 100_000), fallback)

export const FakeOptions = Schema.Struct({
  slots: slots(16),
  contextTokens: withDefault(count, 8192),
  /** Takes pictures of at most this many pixels, and describes them where the prompt is no script. */
  pictures: Schema.optionalKey(Schema.Struct({ maxPixels: Schema.Int.check(Schema.isGreaterThan(0)) })),
  /** How probable the end of every user's message is, and how long it takes to say so. Absent: it cannot say. */
  messageEnd: Schema.optionalKey(
    Schema.Struct({
      probability: numberFrom(1e-6, 1),
      tookMs: withDefault(count, 0),
      /** It takes so long whatever the request allows. */
      dawdles: withDefault(Schema.Boolean, false),
      /** It fails instead. */
      fails: withDefault(Schema.Boolean, false),
    }),
  ),
  /** Duration of a load in milliseconds. */
  loadMs: withDefault(count, 0),
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
  voices: withDefault(Schema.Array(Schema.String), ["fake"]),
  languages: withDefault(Schema.Array(Schema.String), ["en"]),
  /** Accepts reference clips, whose sound it ignores, and the voice `default`. */
  cloning: withDefault(Schema.Boolean, false),
  /** The real-time factor that it reports, and that it uses for scripts without timing. */
  realTimeFactor: Schema.optionalKey(Schema.Finite),
})

export const FakeTranscriptionOptions = Schema.Struct({
  slots: slots(4),
  /** Seconds of the longest piece that is decoded at once. */
  pieceSeconds: withDefault(numberFrom(0.5, 30), 8),
  /** Milliseconds of one call. */
  callMs: withDefault(count, 0),
  /** Makes captions of at most this many seconds, each in this many milliseconds. */
  captions: Schema.optionalKey(
    Schema.Struct({
      seconds: numberFrom(0.5, 30),
      callMs: count,
    }),
  ),
  languages: withDefault(Schema.Array(Schema.String), ["en", "fr"]),
  /** True if certain sample values cause a crash, a hang or a failure. */
  scripted: withDefault(Schema.Boolean, true),
  /** Translates by writing capitals. */
  translates: withDefault(Schema.Boolean, false),
  /** Transcribed instead of made-up words. */
  words: Schema.optionalKey(Schema.NonEmptyArray(Schema.NonEmptyString)),
})

export const FakeEmbeddingOptions = Schema.Struct({
  slots: slots(8),
  contextTokens: withDefault(count, 512),
  dimensions: withDefault(integerFrom(1, 8192), 64),
  /** Milliseconds for each input. */
  callMs: withDefault(count, 0),
})
