// The messages of a chat request (protocol 7.2, 7.7). Schemas.
import { Schema } from "effect"
import { optional, text } from "./Fields.ts"
import { ImagePart } from "./Pictures.ts"
import { FunctionCall, RequestedCall } from "./Tools.ts"

const TextPart = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })
/** A part of any other type: audio, files. No model accepts one. */
const OtherPart = Schema.Struct({ type: Schema.String })

export const ChatMessage = Schema.Struct({
  /** `developer` is OpenAI's newer name for `system`, `tool` that for `function`. */
  role: Schema.Literals(["system", "developer", "user", "assistant", "tool", "function"]),
  /** May be absent in an assistant message with calls. */
  content: Schema.optionalKey(
    Schema.Union([
      Schema.String,
      Schema.Array(
        Schema.Union([TextPart, ImagePart, OtherPart]).annotate({ message: "must be a part with a type" }),
      ),
      Schema.Null,
    ]).annotate({ message: "must be a text or a list of parts" }),
  ),
  /** Assistant messages: what the model thought. Other servers call it this, OpenAI has none. */
  reasoning_content: optional(text),
  tool_calls: optional(Schema.Array(RequestedCall)),
  function_call: optional(FunctionCall),
  /** Tool messages: the call that they answer. */
  tool_call_id: optional(text),
  /** Function messages: the function that they answer. */
  name: optional(text),
})
export type ChatMessage = typeof ChatMessage.Type

/** The parts of a message; a text is one part. */
export type MessagePart = Exclude<NonNullable<ChatMessage["content"]>, string>[number]
