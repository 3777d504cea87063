// Answers of a conversation as objects on the wire. Schemas and pure functions.
import { Schema } from "effect"
import { Item } from "./Items.ts"
import { AudioDescription } from "./Settings.ts"

const responseStatus = Schema.Literals(["in_progress", "completed", "cancelled", "incomplete", "failed"])
export type ResponseStatus = typeof responseStatus.Type

/** Why an answer is not complete. */
export const StatusDetails = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("cancelled"),
    reason: Schema.Literals(["turn_detected", "client_cancelled"]),
  }),
  Schema.Struct({ type: Schema.Literal("incomplete"), reason: Schema.Literal("max_output_tokens") }),
  Schema.Struct({
    type: Schema.Literal("failed"),
    error: Schema.Struct({ type: Schema.String, code: Schema.String, message: Schema.String }),
  }),
])
export type StatusDetails = typeof StatusDetails.Type

const AnswerUsage = Schema.Struct({
  total_tokens: Schema.Int,
  input_tokens: Schema.Int,
  output_tokens: Schema.Int,
  input_token_details: Schema.Struct({
    text_tokens: Schema.Int,
    audio_tokens: Schema.Int,
    image_tokens: Schema.Int,
    cached_tokens: Schema.Int,
  }),
  output_token_details: Schema.Struct({ text_tokens: Schema.Int, audio_tokens: Schema.Int }),
})
type AnswerUsage = typeof AnswerUsage.Type

export const ResponseObject = Schema.Struct({
  object: Schema.Literal("realtime.response"),
  id: Schema.String,
  status: responseStatus,
  status_details: Schema.NullOr(StatusDetails),
  output: Schema.Array(Item),
  conversation_id: Schema.NullOr(Schema.String),
  output_modalities: Schema.Array(Schema.Literals(["audio", "text"])),
  max_output_tokens: Schema.Union([Schema.Literal("inf"), Schema.Int]),
  audio: Schema.Struct({
    output: Schema.Struct({
      format: AudioDescription,
      voice: Schema.String,
      speed: Schema.Finite,
      pacing: Schema.Literals(["realtime", "none"]),
    }),
  }),
  metadata: Schema.NullOr(Schema.Record(Schema.String, Schema.String)),
  usage: Schema.NullOr(AnswerUsage),
})
export type ResponseObject = typeof ResponseObject.Type

/** Audio of one `audio_tokens` that is spoken, milliseconds: OpenAI's count. Audio is charged by its minutes, not by these. */
const msPerAudioToken = 50

export interface AnswerCounts {
  readonly inputTokens: number
  readonly cachedTokens: number
  readonly imageTokens: number
  readonly outputTokens: number
  readonly audioMs: number
}

export const noCounts: AnswerCounts = {
  inputTokens: 0,
  cachedTokens: 0,
  imageTokens: 0,
  outputTokens: 0,
  audioMs: 0,
}

/** The model reads transcripts, so the user's audio is counted as their text. */
export const answerUsage = (counts: AnswerCounts): AnswerUsage => {
  const audioTokens = Math.ceil(counts.audioMs / msPerAudioToken)
  const outputTokens = counts.outputTokens + audioTokens
  return {
    total_tokens: counts.inputTokens + outputTokens,
    input_tokens: counts.inputTokens,
    output_tokens: outputTokens,
    input_token_details: {
      text_tokens: counts.inputTokens - counts.imageTokens,
      audio_tokens: 0,
      image_tokens: counts.imageTokens,
      cached_tokens: counts.cachedTokens,
    },
    output_token_details: { text_tokens: counts.outputTokens, audio_tokens: audioTokens },
  }
}
