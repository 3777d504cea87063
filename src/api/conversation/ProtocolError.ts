// A client's event that cannot be carried out, with OpenAI's code: clients tell some of them apart by it.
import { Data, Effect } from "effect"
import type { SocketError } from "effect/socket/Socket"
import { type EdgeError, errorType } from "#domain/wire/Failures.ts"
import { detailOf } from "#http/ErrorBody.ts"
import { reportFailure } from "#services/AnswerFailures.ts"
import type { Tell } from "../live/RealtimeItems.ts"

export class ProtocolError extends Data.TaggedError("ProtocolError")<{
  readonly code: string
  readonly message: string
  readonly param: string | null
}> {}

export const noActiveAnswer = new ProtocolError({
  code: "response_cancel_not_active",
  // Clients look for the beginning of this text.
  message: "Cancellation failed: no active response found",
  param: null,
})

export const answerIsActive = (id: string): ProtocolError =>
  new ProtocolError({
    code: "conversation_already_has_active_response",
    message: `Conversation already has an active response in progress: ${id}. Wait until it has ended.`,
    param: null,
  })

export const emptyCommit = (heardMs: number): ProtocolError =>
  new ProtocolError({
    code: "input_audio_buffer_commit_empty",
    message: `Error committing input audio buffer: buffer too small. Expected at least 100ms of audio, but buffer only has ${heardMs.toFixed(2)}ms of audio.`,
    param: null,
  })

/** The output of a call that is not in the conversation. */
export const noCall = (callId: string): ProtocolError =>
  new ProtocolError({
    code: "invalid_tool_call_id",
    message: `Error: the call with id '${callId.slice(0, 64)}' is not one of this conversation`,
    param: "item.call_id",
  })

/** `verb`: what was to be done with the item. */
export const noItem = (verb: "retrieve" | "delete" | "truncate", id: string): ProtocolError =>
  new ProtocolError({
    code: `item_${verb}_invalid_item_id`,
    message: `Error: the item with id '${id.slice(0, 64)}' is not one of this conversation that can be ${verb}d`,
    param: "item_id",
  })

/** Writes the event of an error. `eventId`: the client's event that it answers. */
export const tellError = (
  tell: Tell,
  error: EdgeError | ProtocolError,
  eventId: string | null,
): Effect.Effect<void, SocketError> => {
  const told = (type: string, code: string, message: string, param: string | null) =>
    tell("error", { error: { type, code, message, param, event_id: eventId } })
  if (error._tag === "ProtocolError") {
    return told("invalid_request_error", error.code, error.message, error.param)
  }
  const param = error._tag === "InvalidRequest" ? error.field : null
  return Effect.andThen(
    reportFailure(error, "/v1/realtime"),
    told(errorType(error), error._tag, detailOf(error), param),
  )
}
