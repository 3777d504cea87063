// The session of a conversation: what a client may set, the defaults, and how the server describes it. Schemas and pure
// functions. Fields that have no effect here are accepted and left out of the description.
import { Schema } from "effect"
import { semanticSilenceMs } from "../activity/SemanticSilence.ts"
import { memoryOf } from "../wire/Json.ts"
import { includedLogprobs } from "../wire/RealtimeProtocol.ts"
import { Keywords, LanguageCode, LanguageCodes, TranscriptionParameters } from "../wire/Transcription.ts"
import { anyObject, finite, flag, int, name, optional, range, textUpTo } from "../wire/text/Fields.ts"
import { maxTools } from "../wire/text/Tools.ts"
import { maxTextCharacters } from "./Items.ts"

/** Sample rate of `audio/pcm`, in both directions. */
export const conversationRateHz = 24_000

/** Tokens of one answer that a session may ask for (`inf`: as many). */
const maxOutputTokens = 4_096

const AudioFormat = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("audio/pcm"),
    rate: optional(Schema.Literal(conversationRateHz).annotate({ message: "must be 24000" })),
  }),
  Schema.Struct({ type: Schema.Literals(["audio/pcmu", "audio/pcma"]) }),
]).annotate({ message: "must be audio/pcm at 24000, audio/pcmu or audio/pcma" })

/** 16-bit PCM of 24 kHz, or G.711 of 8 kHz by the µ-law (`pcmu`) or the A-law. */
type ConversationAudio = "pcm" | "pcmu" | "pcma"

const audioNames = { "audio/pcm": "pcm", "audio/pcmu": "pcmu", "audio/pcma": "pcma" } as const

const audioOf = (
  format: typeof AudioFormat.Type | null | undefined,
  present: ConversationAudio,
): ConversationAudio => (format === undefined ? present : audioNames[format?.type ?? "audio/pcm"])

/** How the server describes a format. */
export const AudioDescription = Schema.Union([
  Schema.Struct({ type: Schema.Literal("audio/pcm"), rate: Schema.Int }),
  Schema.Struct({ type: Schema.Literals(["audio/pcmu", "audio/pcma"]) }),
])

const descriptionOf = (audio: ConversationAudio): typeof AudioDescription.Type =>
  audio === "pcm" ? { type: "audio/pcm", rate: conversationRateHz } : { type: `audio/${audio}` }

/** A name of a model, a voice, a type or an event. Generous. */
const anyName = textUpTo(256)

/** What the model is told beside the items. */
export const Instructions = textUpTo(maxTextCharacters)

const Tool = Schema.Struct({
  type: optional(anyName),
  name: Schema.optionalKey(name),
  description: optional(textUpTo(maxTextCharacters)),
  /** JSON Schema of the arguments. */
  parameters: optional(anyObject),
}).check(
  // Tools of other types are of other servers, and have no effect.
  Schema.makeFilter(({ name, type }) =>
    name === undefined && (type ?? "function") === "function"
      ? { path: ["name"], issue: "is required" }
      : undefined,
  ),
)
export type ConversationTool = typeof Tool.Type

/** Memory of all tools of a session or an answer, bytes (`memoryOf`). A guess: 128 tools with 50 values each have half of it. */
const maxToolBytes = 1024 * 1024

export const Tools = Schema.Array(Tool).check(
  Schema.isMaxLength(maxTools, { message: `must be at most ${maxTools} tools` }),
  Schema.makeFilter(
    (tools) =>
      memoryOf(tools, maxToolBytes) <= maxToolBytes || `must be at most ${maxToolBytes} bytes together`,
    {},
  ),
)

/** A function is named by an object, or, by some clients, by its bare name. */
export const ToolChoice = Schema.Union([
  name,
  Schema.Struct({ type: Schema.Literal("function"), name }),
]).annotate({ message: "must be auto, none, required, or a function by its name" })
export type ToolChoice = typeof ToolChoice.Type

export const OutputModalities = Schema.Union([
  Schema.Tuple([Schema.Literal("audio")]),
  Schema.Tuple([Schema.Literal("text")]),
]).annotate({ message: 'must be ["audio"] or ["text"]' })

export const MaxOutputTokens = Schema.Union([
  Schema.Literal("inf"),
  int.check(range(1, maxOutputTokens)),
]).annotate({ message: `must be 1 to ${maxOutputTokens}, or inf` })

const milliseconds = (minimum: number, maximum: number) => optional(finite.check(range(minimum, maximum)))
/** Of `language_model`. A guess: then hardly anything else counts. */
const mostModelWeight = 10
const answering = { create_response: optional(flag), interrupt_response: optional(flag) }
const eagerness = Schema.Literals(["low", "medium", "high", "auto"]).annotate({
  message: "must be low, medium, high or auto",
})

const TurnDetection = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("server_vad"),
    threshold: optional(finite.check(range(0, 1))),
    prefix_padding_ms: milliseconds(0, 5_000),
    silence_duration_ms: milliseconds(20, 10_000),
    idle_timeout_ms: milliseconds(5_000, 30_000),
    ...answering,
  }),
  Schema.Struct({
    type: Schema.Literal("semantic_vad"),
    eagerness: optional(eagerness),
    /** Not OpenAI's: how much it counts how probable the language model takes the end of the user's message. 0: it is not asked. */
    language_model: optional(finite.check(range(0, mostModelWeight))),
    ...answering,
  }),
]).annotate({ message: "must be server_vad, semantic_vad or null" })

export const Transcription = Schema.Struct({
  model: optional(anyName),
  language: optional(LanguageCode),
  languages: optional(LanguageCodes),
  prompt: TranscriptionParameters.fields.prompt,
  keywords: optional(Keywords),
})

const Input = Schema.Struct({
  format: optional(AudioFormat),
  transcription: optional(Transcription),
  noise_reduction: optional(
    Schema.Struct({
      type: Schema.Literals(["near_field", "far_field"]).annotate({
        message: "must be near_field or far_field",
      }),
    }),
  ),
  turn_detection: optional(TurnDetection),
})

const pacing = Schema.Literals(["realtime", "none"]).annotate({ message: "must be realtime or none" })

/** A voice by its name, or in the form that newer clients send. */
export const Voice = Schema.Union([anyName, Schema.Struct({ id: anyName })]).annotate({
  message: "must be a voice",
})

const Output = Schema.Struct({
  format: optional(AudioFormat),
  voice: optional(Voice),
  speed: optional(finite.check(range(0.25, 1.5))),
  /** Not OpenAI's: whether audio is sent about as fast as it is played (`realtime`) or as fast as it is made (`none`). */
  pacing: optional(pacing),
})

export const Truncation = Schema.Union([
  Schema.Literals(["auto", "disabled"]),
  Schema.Struct({
    type: Schema.Literal("retention_ratio"),
    retention_ratio: finite.check(range(0, 1)),
    token_limits: optional(Schema.Struct({ post_instructions: optional(int) })),
  }),
]).annotate({ message: "must be auto, disabled or a retention_ratio" })
export type Truncation = typeof Truncation.Type

/** The event that clients get only if they ask for it: pipecat and others end at one that they do not know. */
export const latencyEvent = "response.latency"

/** Events and fields beyond the usual ones: `latencyEvent` and `includedLogprobs`. Others have no effect. */
const Included = Schema.Array(anyName)
  .check(Schema.isMaxLength(32))
  .annotate({ message: "must be at most 32 names of events or fields" })

export const SessionChange = Schema.Struct({
  type: Schema.Literal("realtime").annotate({ message: "must be realtime" }),
  output_modalities: optional(OutputModalities),
  instructions: optional(Instructions),
  tools: optional(Tools),
  tool_choice: optional(ToolChoice),
  max_output_tokens: optional(MaxOutputTokens),
  truncation: optional(Truncation),
  include: optional(Included),
  audio: optional(Schema.Struct({ input: optional(Input), output: optional(Output) })),
})
export type SessionChange = typeof SessionChange.Type

type Modality = "audio" | "text"

/** How turns of the user are found. */
export interface Turns {
  readonly kind: "server_vad" | "semantic_vad"
  readonly silenceMs: number
  readonly prefixMs: number
  readonly threshold: number
  readonly eagerness: typeof eagerness.Type
  /** How much the language model's word counts for the end of a turn; 1: as much as was learned with the built-in one; 0: it is not asked. */
  readonly modelWeight: number
  readonly idleTimeoutMs: number | null
  /** Whether the end of a turn starts an answer. */
  readonly creates: boolean
  /** Whether speech stops the answer that is being given. */
  readonly interrupts: boolean
}

export interface ConversationSettings {
  readonly modality: Modality
  readonly instructions: string
  readonly tools: ReadonlyArray<ConversationTool>
  readonly toolChoice: ToolChoice
  readonly maxOutputTokens: number | "inf"
  readonly truncation: Truncation
  /** Whether each answer is followed by an event that says where its time went. */
  readonly tellsLatency: boolean
  /** Whether transcripts have the log probabilities of their tokens. */
  readonly tellsLogprobs: boolean
  /** null: transcripts are not sent. The user's turns are transcribed all the same. */
  readonly transcription: typeof Transcription.Type | null
  readonly noiseReduction: "near_field" | "far_field" | null
  /** null: the client ends each turn. */
  readonly turns: Turns | null
  /** Of the user's audio. */
  readonly hears: ConversationAudio
  /** Of the answers' audio. */
  readonly sounds: ConversationAudio
  readonly voice: string
  readonly speed: number
  readonly pacing: typeof pacing.Type
}

const defaultTurns: Turns = {
  kind: "server_vad",
  silenceMs: 500,
  prefixMs: 300,
  threshold: 0.5,
  eagerness: "auto",
  modelWeight: 0,
  idleTimeoutMs: null,
  creates: true,
  interrupts: true,
}

/** `voice`: the voice that a session begins with. */
export const defaultSettings = (voice: string): ConversationSettings => ({
  modality: "audio",
  instructions: "",
  tools: [],
  toolChoice: "auto",
  maxOutputTokens: "inf",
  truncation: "auto",
  tellsLatency: false,
  tellsLogprobs: false,
  transcription: null,
  noiseReduction: null,
  turns: defaultTurns,
  hears: "pcm",
  sounds: "pcm",
  voice,
  speed: 1,
  pacing: "realtime",
})

type GivenTurns = typeof TurnDetection.Type

/** What a client gives replaces the whole; what it leaves out has its default. */
const turnsOf = (given: GivenTurns): Turns => {
  const answers = {
    creates: given.create_response ?? true,
    interrupts: given.interrupt_response ?? true,
  }
  if (given.type === "semantic_vad") {
    const eager = given.eagerness ?? "auto"
    return {
      ...defaultTurns,
      ...answers,
      kind: given.type,
      eagerness: eager,
      modelWeight: given.language_model ?? defaultTurns.modelWeight,
      silenceMs: semanticSilenceMs(eager, undefined),
    }
  }
  return {
    ...defaultTurns,
    ...answers,
    silenceMs: given.silence_duration_ms ?? defaultTurns.silenceMs,
    prefixMs: given.prefix_padding_ms ?? defaultTurns.prefixMs,
    threshold: given.threshold ?? defaultTurns.threshold,
    idleTimeoutMs: given.idle_timeout_ms ?? null,
  }
}

/** The present value where the client gives none; null and "" clear what can be cleared. */
const given = <A>(value: A | null | undefined, present: A, cleared: A = present): A =>
  value === undefined ? present : (value ?? cleared)

export const voiceNameOf = (voice: typeof Voice.Type): string =>
  typeof voice === "string" ? voice : voice.id

export const withChange = (
  settings: ConversationSettings,
  { audio, ...change }: SessionChange,
): ConversationSettings => {
  const input = audio?.input ?? {}
  const output = audio?.output ?? {}
  const { turn_detection: turns } = input
  const included = given(change.include, includedIn(settings), [])
  return {
    modality: change.output_modalities?.[0] ?? settings.modality,
    instructions: given(change.instructions, settings.instructions, ""),
    tools: given(change.tools, settings.tools, []),
    toolChoice: given(change.tool_choice, settings.toolChoice, "auto"),
    maxOutputTokens: given(change.max_output_tokens, settings.maxOutputTokens, "inf"),
    truncation: given(change.truncation, settings.truncation, "auto"),
    tellsLatency: included.includes(latencyEvent),
    tellsLogprobs: included.includes(includedLogprobs),
    transcription: given<ConversationSettings["transcription"]>(
      input.transcription,
      settings.transcription,
      null,
    ),
    noiseReduction:
      input.noise_reduction === undefined ? settings.noiseReduction : (input.noise_reduction?.type ?? null),
    turns: turns === undefined ? settings.turns : turns === null ? null : turnsOf(turns),
    hears: audioOf(input.format, settings.hears),
    sounds: audioOf(output.format, settings.sounds),
    voice: output.voice ? voiceNameOf(output.voice) : settings.voice,
    speed: given(output.speed, settings.speed, 1),
    pacing: given(output.pacing, settings.pacing, "realtime"),
  }
}

/** What the client has asked for, of what there is. */
const includedIn = ({ tellsLatency, tellsLogprobs }: ConversationSettings): ReadonlyArray<string> => [
  ...(tellsLatency ? [latencyEvent] : []),
  ...(tellsLogprobs ? [includedLogprobs] : []),
]

const turnDetection = (turns: Turns | null) => {
  if (turns === null) return null
  const answers = { create_response: turns.creates, interrupt_response: turns.interrupts }
  if (turns.kind === "semantic_vad")
    return { type: turns.kind, eagerness: turns.eagerness, language_model: turns.modelWeight, ...answers }
  return {
    type: turns.kind,
    threshold: turns.threshold,
    prefix_padding_ms: turns.prefixMs,
    silence_duration_ms: turns.silenceMs,
    idle_timeout_ms: turns.idleTimeoutMs,
    ...answers,
  }
}

export const outputOf = ({
  pacing,
  sounds,
  speed,
  voice,
}: Pick<ConversationSettings, "pacing" | "sounds" | "speed" | "voice">) => ({
  format: descriptionOf(sounds),
  voice,
  speed,
  pacing,
})

/** What stays the same for a whole session. */
export interface SessionFacts {
  readonly id: string
  /** The name that the client asked for. */
  readonly model: string
  /** Unix time, seconds. */
  readonly expiresAt: number
}

export const sessionObject = ({ expiresAt, id, model }: SessionFacts, settings: ConversationSettings) => ({
  type: "realtime" as const,
  object: "realtime.session" as const,
  id,
  model,
  expires_at: expiresAt,
  output_modalities: [settings.modality],
  instructions: settings.instructions,
  tools: settings.tools,
  tool_choice: settings.toolChoice,
  max_output_tokens: settings.maxOutputTokens,
  truncation: settings.truncation,
  include: includedIn(settings).length === 0 ? null : includedIn(settings),
  audio: {
    input: {
      format: descriptionOf(settings.hears),
      transcription: settings.transcription,
      noise_reduction: settings.noiseReduction === null ? null : { type: settings.noiseReduction },
      turn_detection: turnDetection(settings.turns),
    },
    output: outputOf(settings),
  },
})
