// The transcription part of OpenAI's realtime protocol (protocol 11): client messages, and the description of a
// session. Schemas and pure functions. Accepts both spellings, `session.update` and the older
// `transcription_session.update`.
import { Schema } from "effect"
import type { KeepsBytes } from "../json/JsonReader.ts"
import type { PunctuationChoice } from "../language/Punctuated.ts"
import { expectsTurns } from "../models/ModelNames.ts"
import { InvalidRequest } from "./Errors.ts"
import { Keywords, LanguageCodes, TranscriptionParameters } from "./Transcription.ts"
import { textUpTo } from "./text/Fields.ts"

/** Sample rate of `pcm16`, the only one of the protocol. */
const realtimeRateHz = 24_000

const Transcription = Schema.Struct({
  model: Schema.optionalKey(textUpTo(256)),
  language: TranscriptionParameters.fields.language,
  /** Newer clients send a list. A list with one language means that language; other lists are ignored. */
  languages: Schema.optionalKey(LanguageCodes),
  prompt: TranscriptionParameters.fields.prompt,
  keywords: Schema.optionalKey(Keywords),
})

const milliseconds = (maximum: number) =>
  Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum })))

const Turns = Schema.NullOr(
  Schema.Struct({
    type: Schema.Literal("server_vad").annotate({ message: "must be server_vad or null" }),
    silence_duration_ms: milliseconds(10_000),
    prefix_padding_ms: milliseconds(5_000),
    threshold: Schema.optionalKey(Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 1 }))),
  }),
)

const Pcm = Schema.Struct({
  type: Schema.Literal("audio/pcm").annotate({ message: "must be audio/pcm" }),
  rate: Schema.optionalKey(Schema.Literal(realtimeRateHz).annotate({ message: "must be 24000" })),
})

const Input = Schema.Struct({
  format: Schema.optionalKey(Pcm),
  transcription: Schema.optionalKey(Transcription),
  turn_detection: Schema.optionalKey(Turns),
})

/** What `include` may ask for: the log probabilities of transcripts. */
export const includedLogprobs = "item.input_audio_transcription.logprobs"

const Include = Schema.optionalKey(
  Schema.NullOr(
    Schema.Array(Schema.Literal(includedLogprobs).annotate({ message: `must be ${includedLogprobs}` })),
  ),
)

export const SessionUpdate = Schema.Struct({
  session: Schema.Struct({
    include: Include,
    audio: Schema.optionalKey(Schema.Struct({ input: Schema.optionalKey(Input) })),
  }),
})

export const TranscriptionSessionUpdate = Schema.Struct({
  session: Schema.Struct({
    include: Include,
    input_audio_format: Schema.optionalKey(Schema.Literal("pcm16").annotate({ message: "must be pcm16" })),
    input_audio_transcription: Schema.optionalKey(Transcription),
    turn_detection: Schema.optionalKey(Turns),
  }),
})

/** Most bytes of a client's event: 15 MiB of audio in base64, which is OpenAI's limit for one, and what stands around it. */
export const maxEventBytes = 15 * 1024 * 1024 + 4_096

/** Audio in base64: a text, or its bytes where it is long. */
export type AudioText = string | Uint8Array

/** The audio of `Append` is not copied to a text. */
export const keepsAudio: KeepsBytes = (path) => path.length === 1 && path[0] === "audio"

export const Append = Schema.Struct({
  audio: Schema.declare(
    (value): value is AudioText => typeof value === "string" || value instanceof Uint8Array,
    { message: "must be a text" },
  ),
})

/** How a session processes audio. */
export interface RealtimeSettings {
  readonly model: string
  readonly language: string | undefined
  readonly prompt: string
  /** Phrases that may occur. */
  readonly keywords: ReadonlyArray<string>
  /** Whether transcripts have the log probabilities of their tokens. */
  readonly logprobs: boolean
  /** From the query: the protocol has no field for it. */
  readonly punctuation: PunctuationChoice
  /** Turn detection. null: the client ends each turn. */
  readonly turns: TurnSettings | null
}

interface TurnSettings {
  readonly silenceMs: number
  readonly prefixMs: number
  /** Probability of speech that counts as speech, 0 to 1. */
  readonly threshold: number
}

/** The protocol's defaults. */
export const defaultTurns: TurnSettings = { silenceMs: 500, prefixMs: 300, threshold: 0.5 }

type Change = typeof Input.Type & { readonly include?: typeof Include.schema.Type }

const singleLanguage = (languages: ReadonlyArray<string> = []): string | undefined =>
  languages.length === 1 ? languages[0] : undefined

export const withChange = (settings: RealtimeSettings, change: Change): RealtimeSettings => {
  const { include, transcription, turn_detection } = change
  const model = transcription?.model
  // For a model whose clients end turns themselves, unless the update says otherwise.
  const turns = turn_detection === undefined && !expectsTurns(model) ? null : turn_detection
  return {
    model: model ?? settings.model,
    language: transcription?.language ?? singleLanguage(transcription?.languages) ?? settings.language,
    prompt: transcription?.prompt ?? settings.prompt,
    keywords: transcription?.keywords ?? settings.keywords,
    logprobs: include === undefined ? settings.logprobs : (include ?? []).length > 0,
    punctuation: settings.punctuation,
    turns:
      turns === undefined
        ? settings.turns
        : turns === null
          ? null
          : {
              silenceMs: turns.silence_duration_ms ?? defaultTurns.silenceMs,
              prefixMs: turns.prefix_padding_ms ?? defaultTurns.prefixMs,
              threshold: turns.threshold ?? defaultTurns.threshold,
            },
  }
}

/** The refusal of what a socket may not hold besides. `limit`: bytes that its user's sockets may hold together at present. */
export const noMemory = (field: string, { limit }: { readonly limit: number }): InvalidRequest =>
  new InvalidRequest({
    field,
    problem: `would make the realtime sockets of this user hold more than ${limit} bytes, which is what the node has for them now: delete items, end sockets or try again later`,
  })

/** Converts the older update to the newer form. */
export const changeOf = (session: (typeof TranscriptionSessionUpdate.Type)["session"]): Change => ({
  ...(session.include === undefined ? {} : { include: session.include }),
  ...(session.input_audio_transcription === undefined
    ? {}
    : { transcription: session.input_audio_transcription }),
  ...(session.turn_detection === undefined ? {} : { turn_detection: session.turn_detection }),
})

const turnDetection = ({ turns }: RealtimeSettings) =>
  turns === null
    ? null
    : {
        type: "server_vad",
        threshold: turns.threshold,
        silence_duration_ms: turns.silenceMs,
        prefix_padding_ms: turns.prefixMs,
      }

const transcription = ({ keywords, language, model, prompt }: RealtimeSettings) => ({
  model,
  ...(keywords.length === 0 ? {} : { keywords }),
  ...(language === undefined ? {} : { language }),
  ...(prompt === "" ? {} : { prompt }),
})

const included = ({ logprobs }: RealtimeSettings) => (logprobs ? { include: [includedLogprobs] } : {})

export const sessionObject = (id: string, settings: RealtimeSettings) => ({
  id,
  object: "realtime.transcription_session",
  type: "transcription",
  ...included(settings),
  audio: {
    input: {
      format: { type: "audio/pcm", rate: realtimeRateHz },
      transcription: transcription(settings),
      turn_detection: turnDetection(settings),
    },
  },
})

export const olderSessionObject = (id: string, settings: RealtimeSettings) => ({
  id,
  object: "realtime.transcription_session",
  ...included(settings),
  input_audio_format: "pcm16",
  input_audio_transcription: transcription(settings),
  turn_detection: turnDetection(settings),
})

/** A piece of speech as an item of the conversation. */
export const itemObject = (id: string, transcript: string | null) => ({
  id,
  object: "realtime.item",
  type: "message",
  role: "user",
  status: "completed",
  content: [{ type: "input_audio", transcript }],
})
