// Events that the server sends on the realtime socket (protocol 11.4, 11.5). Schemas only.
import { Schema } from "effect"
import * as Errors from "../Errors.ts"
import { textUpTo } from "../text/Fields.ts"
import { Logprobs } from "./TranscriptEvents.ts"

const TurnDetection = Schema.NullOr(
  Schema.Struct({
    type: Schema.Literal("server_vad"),
    threshold: Schema.Finite,
    silence_duration_ms: Schema.Finite,
    prefix_padding_ms: Schema.Finite,
  }),
)

const Transcription = Schema.Struct({
  model: Schema.String,
  language: Schema.optionalKey(Schema.String),
  prompt: Schema.optionalKey(Schema.String),
  keywords: Schema.optionalKey(Schema.Array(Schema.String)),
})

const session = {
  id: Schema.String,
  object: Schema.Literal("realtime.transcription_session"),
  include: Schema.optionalKey(Schema.Array(Schema.String)),
}

const Session = Schema.Struct({
  ...session,
  type: Schema.Literal("transcription"),
  audio: Schema.Struct({
    input: Schema.Struct({
      format: Schema.Struct({ type: Schema.Literal("audio/pcm"), rate: Schema.Int }),
      transcription: Transcription,
      turn_detection: TurnDetection,
    }),
  }),
})

/** How clients of the protocol's older spelling read a session. */
const OlderSession = Schema.Struct({
  ...session,
  input_audio_format: Schema.Literal("pcm16"),
  input_audio_transcription: Transcription,
  turn_detection: TurnDetection,
})

const Item = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("realtime.item"),
  type: Schema.Literal("message"),
  role: Schema.Literal("user"),
  status: Schema.Literal("completed"),
  content: Schema.Array(
    Schema.Struct({ type: Schema.Literal("input_audio"), transcript: Schema.NullOr(Schema.String) }),
  ),
})

const errorTypes = Schema.Literals(["invalid_request_error", "server_error"])
/** Those of the errors, and that of the last event of a client that sends too many (protocol 11.2). */
const codes = Schema.Literals([...Object.keys(Errors), "too_many_events"])

const event = <const Type extends string, Fields extends Schema.Struct.Fields>(
  types: ReadonlyArray<Type>,
  fields: Fields,
) => Schema.Struct({ type: Schema.Literals(types), event_id: Schema.String, ...fields })

const previous = { previous_item_id: Schema.NullOr(Schema.String) }
const part = { item_id: Schema.String, content_index: Schema.Int }
const transcription = "conversation.item.input_audio_transcription"

export const RealtimeEvent = Schema.Union([
  event(["session.created", "session.updated"], { session: Session }),
  event(["transcription_session.created", "transcription_session.updated"], { session: OlderSession }),
  event(["input_audio_buffer.speech_started"], { audio_start_ms: Schema.Finite, item_id: Schema.String }),
  event(["input_audio_buffer.speech_stopped"], {
    audio_end_ms: Schema.Finite,
    item_id: Schema.NullOr(Schema.String),
  }),
  event(["input_audio_buffer.committed"], { ...previous, item_id: Schema.String }),
  event(["conversation.item.added", "conversation.item.done", "conversation.item.created"], {
    ...previous,
    item: Item,
  }),
  event([`${transcription}.delta`], { ...part, delta: Schema.String, logprobs: Logprobs }),
  event([`${transcription}.completed`], {
    ...part,
    transcript: Schema.String,
    logprobs: Logprobs,
    usage: Schema.Struct({ type: Schema.Literal("duration"), seconds: Schema.Finite }),
  }),
  event([`${transcription}.failed`], {
    ...part,
    error: Schema.Struct({
      type: errorTypes,
      code: Schema.Literal("transcription_failed"),
      message: Schema.String,
      param: Schema.Null,
    }),
  }),
  event(["input_audio_buffer.cleared"], {}),
  event(["error"], {
    error: Schema.Struct({
      type: errorTypes,
      code: codes,
      message: Schema.String,
      param: Schema.NullOr(Schema.String),
      event_id: Schema.NullOr(Schema.String),
    }),
  }),
])

/** Longest id that a client gives an event, which comes back with its error. OpenAI's limit. */
export const maxEventIdCharacters = 512

/** Events of the client: any `type`; what each has beside it stands in RealtimeProtocol. */
export const RealtimeClientEvent = Schema.Struct({
  type: textUpTo(256),
  event_id: Schema.optionalKey(textUpTo(maxEventIdCharacters)),
})
