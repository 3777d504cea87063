// A chat request and its replies on the wire (protocol 7.2, 7.3). Schemas.
import { Schema } from "effect"
import { samplingFields } from "./Sampling.ts"

const TextPart = Schema.Struct({ type: Schema.Literal("text"), text: Schema.String })
/** A part of any other type: images, audio, files. The model decides whether it accepts it. */
const OtherPart = Schema.Struct({ type: Schema.String })

export const ChatMessage = Schema.Struct({
  /** `developer` is OpenAI's newer name for `system`. */
  role: Schema.Literals(["system", "developer", "user", "assistant"]),
  content: Schema.Union([
    Schema.String,
    Schema.Array(Schema.Union([TextPart, OtherPart]).annotate({ message: "must be a part with a type" })),
  ]).annotate({ message: "must be a text or a list of parts" }),
})
export type ChatMessage = typeof ChatMessage.Type

export const ChatRequest = Schema.Struct({
  model: Schema.NonEmptyString,
  messages: Schema.Array(ChatMessage).check(Schema.isMinLength(1, { message: "must not be empty" })),
  ...samplingFields,
})
export type ChatRequest = typeof ChatRequest.Type

export const FinishReason = Schema.Literals(["stop", "length", "content_filter"])

export const TokenUsage = Schema.Struct({
  prompt_tokens: Schema.Int,
  completion_tokens: Schema.Int,
  total_tokens: Schema.Int,
})

export const ChatCompletion = Schema.Struct({
  id: Schema.String,
  object: Schema.Literal("chat.completion"),
  created: Schema.Int,
  model: Schema.String,
  choices: Schema.Array(
    Schema.Struct({
      index: Schema.Int,
      message: Schema.Struct({ role: Schema.Literal("assistant"), content: Schema.String }),
      finish_reason: FinishReason,
    }),
  ),
  usage: TokenUsage,
})

/** The text of a message. Undefined if a part is not text. */
export const textOf = (content: ChatMessage["content"]): string | undefined => {
  if (typeof content === "string") return content
  let text = ""
  for (const part of content) {
    if (!("text" in part)) return undefined
    text += part.text
  }
  return text
}
