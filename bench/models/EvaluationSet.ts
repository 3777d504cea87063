// The evaluation set of the built-in models: what was said, by whom, and the audio, from models/eval. Its sentences were
// never in training (test/models/Disjoint.test.ts). Called by the sections; knows no engine.
import { readFileSync } from "node:fs"
import { fileURLToPath } from "node:url"
import { Effect, Schema } from "effect"
import { decodeClip } from "#audio/DecodeClip.ts"
import { Decoder } from "#audio/Decoder.ts"
import { LISTEN_RATE_HZ, SPEECH_RATE_HZ } from "#domain/audio/Audio.ts"

const folder = new URL("../../models/eval/", import.meta.url)
const pathOf = (file: string): string => fileURLToPath(new URL(file, folder))

/** Times in seconds from the first sample of the recording. */
const Spoken = Schema.Struct({
  text: Schema.String,
  start: Schema.Finite,
  end: Schema.Finite,
  /** `pattern`: a frame of the training text with other words; `free`: written by hand, no frame can make it. */
  kind: Schema.Literals(["pattern", "free"]),
})

const Recording = Schema.Struct({
  file: Schema.String,
  /** Of espeak-ng. */
  voice: Schema.String,
  /** Whether that voice was among those of the training. */
  group: Schema.Literals(["trained", "unseen"]),
  segments: Schema.Array(Spoken),
})

const Reference = Schema.Struct({ file: Schema.String, voice: Schema.String, text: Schema.String })

const EvaluationSet = Schema.Struct({
  /** Sentences that the built-in voices read and the ears hear. */
  roundTrip: Schema.Array(Schema.String),
  speech: Schema.Array(Recording),
  /** Clips to clone, of speakers that the style encoder never heard. */
  references: Schema.Array(Reference),
})

export type Recording = typeof Recording.Type
export type Reference = typeof Reference.Type

export const evaluationSet = Schema.decodeUnknownSync(Schema.fromJsonString(EvaluationSet))(
  readFileSync(new URL("set.json", folder), "utf8"),
)

/** Longer than any file of the set; the decoder wants a bound. */
const maxSeconds = 60

const decoded = (file: string, rateHz: number) =>
  decodeClip(pathOf(file), { maxSeconds, rateHz }).pipe(Effect.provide(Decoder.layer()))

/** s16 mono at the rate that the ears hear. */
export const recordingSamples = (recording: Recording) => decoded(recording.file, LISTEN_RATE_HZ)
/** s16 mono at the rate of the voices. */
export const referenceSamples = (reference: Reference) => decoded(reference.file, SPEECH_RATE_HZ)

/** One chat and the rule that its last answer has to follow. */
const Prompt = Schema.Struct({
  system: Schema.optionalKey(Schema.String),
  turns: Schema.NonEmptyArray(Schema.String),
  /** The answer must match this, case ignored unless it says otherwise ... */
  rule: Schema.String,
  exactCase: Schema.optionalKey(Schema.Boolean),
  /** ... and must not match this. */
  never: Schema.optionalKey(Schema.String),
})

export type Prompt = typeof Prompt.Type

export const prompts = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Array(Prompt)))(
  readFileSync(new URL("prompts.json", folder), "utf8"),
)
