// Events of a streamed reply of the Responses API, in the order in which they come (protocol 7.14). Schemas.
import { Schema } from "effect"
import {
  OutputItem,
  OutputLogprobs,
  OutputText,
  ReasoningText,
  ResponsesReply,
  SummaryText,
} from "../responses/Reply.ts"
import { Timing } from "./TextEvents.ts"

const { Literal, String: Text, Struct } = Schema

/** 0 in the first event, and one more in each later one. */
const numbered = { sequence_number: Schema.Int }
const ofItem = { ...numbered, item_id: Text, output_index: Schema.Int }
const ofContent = { ...ofItem, content_index: Literal(0) }
const ofSummary = { ...ofItem, summary_index: Literal(0) }

const part = Schema.Union([OutputText, ReasoningText])

export const ResponseEvent = Schema.Union([
  Struct({
    type: Schema.Literals(["response.created", "response.in_progress"]),
    ...numbered,
    response: ResponsesReply,
  }),
  Struct({
    type: Literal("response.output_item.added"),
    ...numbered,
    output_index: Schema.Int,
    item: OutputItem,
  }),
  Struct({ type: Literal("response.content_part.added"), ...ofContent, part }),
  Struct({
    type: Literal("response.output_text.delta"),
    ...ofContent,
    delta: Text,
    logprobs: OutputLogprobs,
  }),
  Struct({ type: Literal("response.output_text.done"), ...ofContent, text: Text, logprobs: OutputLogprobs }),
  Struct({ type: Literal("response.reasoning_text.delta"), ...ofContent, delta: Text }),
  Struct({ type: Literal("response.reasoning_text.done"), ...ofContent, text: Text }),
  Struct({ type: Literal("response.content_part.done"), ...ofContent, part }),
  Struct({ type: Literal("response.reasoning_summary_part.added"), ...ofSummary, part: SummaryText }),
  Struct({ type: Literal("response.reasoning_summary_text.delta"), ...ofSummary, delta: Text }),
  Struct({ type: Literal("response.reasoning_summary_text.done"), ...ofSummary, text: Text }),
  Struct({ type: Literal("response.reasoning_summary_part.done"), ...ofSummary, part: SummaryText }),
  Struct({ type: Literal("response.function_call_arguments.delta"), ...ofItem, delta: Text }),
  Struct({ type: Literal("response.function_call_arguments.done"), ...ofItem, name: Text, arguments: Text }),
  Struct({
    type: Literal("response.output_item.done"),
    ...numbered,
    output_index: Schema.Int,
    item: OutputItem,
  }),
  Struct({
    type: Schema.Literals(["response.completed", "response.incomplete", "response.failed"]),
    ...numbered,
    response: ResponsesReply,
    timing: Schema.optionalKey(Timing),
  }),
  Struct({
    type: Literal("error"),
    ...numbered,
    code: Text,
    message: Text,
    param: Schema.Null,
    /** The same again, where other streams of text have it (protocol 3.5): OpenAI's client throws at this field. */
    error: Struct({ message: Text, type: Schema.Literals(["invalid_request_error", "server_error"]) }),
  }),
])
