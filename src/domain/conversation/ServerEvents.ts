// Events that the server sends in a conversation. Schemas only.
import { Schema } from "effect"
import { ResponseObject } from "./Answers.ts"
import { Item } from "./Items.ts"
import { AudioDescription, latencyEvent, ToolChoice, Transcription, Truncation } from "./Settings.ts"

const NullableText = Schema.NullOr(Schema.String)

const TurnDetection = Schema.NullOr(
  Schema.Union([
    Schema.Struct({
      type: Schema.Literal("server_vad"),
      threshold: Schema.Finite,
      prefix_padding_ms: Schema.Finite,
      silence_duration_ms: Schema.Finite,
      idle_timeout_ms: Schema.NullOr(Schema.Finite),
      create_response: Schema.Boolean,
      interrupt_response: Schema.Boolean,
    }),
    Schema.Struct({
      type: Schema.Literal("semantic_vad"),
      eagerness: Schema.Literals(["low", "medium", "high", "auto"]),
      language_model: Schema.Finite,
      create_response: Schema.Boolean,
      interrupt_response: Schema.Boolean,
    }),
  ]),
)

export const ConversationSession = Schema.Struct({
  type: Schema.Literal("realtime"),
  object: Schema.Literal("realtime.session"),
  id: Schema.String,
  model: Schema.String,
  expires_at: Schema.Int,
  output_modalities: Schema.Array(Schema.Literals(["audio", "text"])),
  instructions: Schema.String,
  tools: Schema.Array(Schema.Record(Schema.String, Schema.Json)),
  tool_choice: ToolChoice,
  max_output_tokens: Schema.Union([Schema.Literal("inf"), Schema.Int]),
  truncation: Truncation,
  include: Schema.NullOr(Schema.Array(Schema.String)),
  audio: Schema.Struct({
    input: Schema.Struct({
      format: AudioDescription,
      transcription: Schema.NullOr(Transcription),
      noise_reduction: Schema.NullOr(Schema.Struct({ type: Schema.Literals(["near_field", "far_field"]) })),
      turn_detection: TurnDetection,
    }),
    output: Schema.Struct({
      format: AudioDescription,
      voice: Schema.String,
      speed: Schema.Finite,
      pacing: Schema.Literals(["realtime", "none"]),
    }),
  }),
})

const event = <const Type extends string, Fields extends Schema.Struct.Fields>(
  types: ReadonlyArray<Type>,
  fields: Fields,
) => Schema.Struct({ type: Schema.Literals(types), event_id: Schema.String, ...fields })

const answer = { response_id: Schema.String, output_index: Schema.Int }
const output = { ...answer, item_id: Schema.String }
const part = { ...output, content_index: Schema.Int }
const call = { ...output, call_id: Schema.String }

/** null: the step did not happen. */
const Milliseconds = Schema.NullOr(Schema.Finite)

const Part = Schema.Union([
  Schema.Struct({ type: Schema.Literal("audio"), transcript: Schema.String }),
  Schema.Struct({ type: Schema.Literal("text"), text: Schema.String }),
])

/** Those that only a conversation has; audio of the user and transcripts are in RealtimeEvents. */
export const ConversationEvent = Schema.Union([
  event(["session.created", "session.updated"], { session: ConversationSession }),
  event(["conversation.item.added", "conversation.item.done"], {
    previous_item_id: NullableText,
    item: Item,
  }),
  event(["input_audio_buffer.timeout_triggered"], {
    audio_start_ms: Schema.Int,
    audio_end_ms: Schema.Int,
    item_id: Schema.String,
  }),
  event(["conversation.item.retrieved"], { item: Item }),
  event(["conversation.item.deleted"], { item_id: Schema.String }),
  event(["conversation.item.truncated"], {
    item_id: Schema.String,
    content_index: Schema.Int,
    audio_end_ms: Schema.Int,
  }),
  event(["response.created", "response.done"], { response: ResponseObject }),
  event([latencyEvent], {
    response_id: Schema.String,
    silence_ms: Milliseconds,
    transcript_ms: Milliseconds,
    first_token_ms: Milliseconds,
    first_clause_ms: Milliseconds,
    first_samples_ms: Milliseconds,
    first_sent_ms: Milliseconds,
    total_ms: Schema.Finite,
    prepared: Schema.Boolean,
  }),
  event(["response.output_item.added", "response.output_item.done"], { ...answer, item: Item }),
  event(["response.content_part.added", "response.content_part.done"], { ...part, part: Part }),
  event(["response.output_audio.delta", "response.output_text.delta"], { ...part, delta: Schema.String }),
  event(["response.output_audio_transcript.delta"], {
    ...part,
    delta: Schema.String,
    /** Not OpenAI's: where the words begin in the item's audio, seconds. */
    start_time: Schema.Finite,
  }),
  event(["response.output_audio.done"], part),
  event(["response.output_audio_transcript.done"], { ...part, transcript: Schema.String }),
  event(["response.output_text.done"], { ...part, text: Schema.String }),
  event(["response.function_call_arguments.delta"], { ...call, delta: Schema.String }),
  event(["response.function_call_arguments.done"], {
    ...call,
    name: Schema.String,
    arguments: Schema.String,
  }),
  event(["error"], {
    error: Schema.Struct({
      type: Schema.Literals(["invalid_request_error", "server_error"]),
      code: Schema.String,
      message: Schema.String,
      param: NullableText,
      event_id: NullableText,
    }),
  }),
])
