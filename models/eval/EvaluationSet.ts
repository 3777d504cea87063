// The evaluation set of the built-in models in models/eval: sentences, voices and audio. Its sentences were never part
// of the training (models/test/Disjoint.test.ts). Imports no engine.
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Effect, Schema } from "effect"
import { decodeClip } from "#audio/DecodeClip.ts"
import { Decoder } from "#audio/Decoder.ts"
import { listenRateHz, speechRateHz } from "#domain/audio/Audio.ts"

const folder = new URL("./", import.meta.url)
const pathOf = (file: string): string => fileURLToPath(new URL(file, folder))

/** Times in seconds from the first sample of the recording. */
const Spoken = Schema.Struct({
  text: Schema.String,
  start: Schema.Finite,
  end: Schema.Finite,
  /** `pattern`: a template of the training text with other words; `free`: written by hand, matches no template. */
  kind: Schema.Literals(["pattern", "free"]),
})

const Recording = Schema.Struct({
  file: Schema.String,
  /** Name of the espeak-ng voice. */
  voice: Schema.String,
  /** `trained`: the training used this voice. */
  group: Schema.Literals(["trained", "unseen"]),
  segments: Schema.Array(Spoken),
})

const Reference = Schema.Struct({ file: Schema.String, voice: Schema.String, text: Schema.String })

const EvaluationSet = Schema.Struct({
  /** Sentences that the built-in voices speak and the transcription model transcribes. */
  roundTrip: Schema.Array(Schema.String),
  speech: Schema.Array(Recording),
  /** Clips to clone, of speakers that the style encoder was not trained on. */
  references: Schema.Array(Reference),
  /** Of each other language of the multilingual transcription model, by its code. */
  languages: Schema.Record(Schema.String, Schema.Array(Recording)),
  /** Sentences with words that the English training never had, of trained voices. */
  unheard: Schema.Array(Recording),
})

export type Recording = typeof Recording.Type
type Reference = typeof Reference.Type

export const evaluationSet = Schema.decodeUnknownSync(Schema.fromJsonString(EvaluationSet))(
  readFileSync(new URL("set.json", folder), "utf8"),
)

/** Limit of a decoded file in seconds, which the decoder requires. Every file of the set is shorter. */
const maxSeconds = 60

const decoded = (file: string, rateHz: number) =>
  decodeClip(pathOf(file), { maxSeconds, rateHz }).pipe(Effect.provide(Decoder.layer()))

/** s16 mono at the sample rate of the transcription model. */
export const recordingSamples = (recording: Recording) => decoded(recording.file, listenRateHz)
/** s16 mono at the sample rate of the voices. */
export const referenceSamples = (reference: Reference) => decoded(reference.file, speechRateHz)

/** One chat, and the rule that its last answer must follow. */
const Prompt = Schema.Struct({
  system: Schema.optionalKey(Schema.String),
  /** What the user writes, message by message; the model answers each of them. */
  messages: Schema.NonEmptyArray(Schema.String),
  /** Regular expression that the answer must match; case is ignored unless `exactCase` is set. */
  rule: Schema.String,
  exactCase: Schema.optionalKey(Schema.Boolean),
  /** Regular expression that the answer must not match. */
  never: Schema.optionalKey(Schema.String),
})

export type Prompt = typeof Prompt.Type

export const prompts = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Prompt)))(
  readFileSync(new URL("prompts.json", folder), "utf8"),
)
