// Items of a conversation as they stand on the wire: messages, calls of functions and their outputs. Schemas.
import { Schema } from "effect"
import { name, optional, text, textUpTo } from "../wire/text/Fields.ts"

/** An id that a client chooses for its item. */
export const ItemId = text.check(
  Schema.isPattern(/^[A-Za-z0-9_-]{1,64}$/, {
    message: "must be 1 to 64 letters, digits, underscores and hyphens",
  }),
)

/** Longest text of one part, and longest instructions, characters. A guess: above every context that is deployed. */
export const maxTextCharacters = 200_000
const partText = textUpTo(maxTextCharacters)

/** Longest id of a call, characters. Generous: OpenAI takes 32 to 64, and gateways in front of other models make longer ones. */
const maxCallIdCharacters = 256
const callId = textUpTo(maxCallIdCharacters)

/** Longest `detail` of a picture, characters. Generous: the longest that is known has 8. */
const maxDetailCharacters = 64

/** Parts of one message. A guess. */
const maxParts = 64

const textPart = <const Type extends string>(type: Type) =>
  Schema.Struct({ type: Schema.Literal(type), text: partText })

/** Audio that a client adds as an item is known by its transcript. */
const audioPart = <const Type extends string>(type: Type) =>
  Schema.Struct({ type: Schema.Literal(type), transcript: optional(partText) })

/** One schema for each type, so that an error names the field that is wrong. */
const InputPart = Schema.Union([
  textPart("input_text"),
  textPart("output_text"),
  textPart("text"),
  audioPart("input_audio"),
  audioPart("output_audio"),
  audioPart("audio"),
  Schema.Struct({
    type: Schema.Literal("input_image"),
    image_url: text,
    detail: optional(textUpTo(maxDetailCharacters)),
  }),
]).annotate({ message: "must be an input_text, input_audio, input_image, output_text or output_audio part" })

/** Parts that a message of the role may have, as an error names them. */
const partsOf = {
  user: "input_text, input_audio or input_image",
  system: "input_text",
  assistant: "output_text or output_audio",
} as const

/** `text` and `audio`, of earlier versions of the protocol, suit every role. */
const suits = (part: (typeof InputPart)["Type"]["type"], role: keyof typeof partsOf): boolean =>
  role === "assistant" ? !part.startsWith("input_") : !part.startsWith("output_")

/** An item as a client gives it. */
export const GivenItem = Schema.Union([
  Schema.Struct({
    type: Schema.Literal("message"),
    id: optional(ItemId),
    role: Schema.Literals(["user", "assistant", "system"]).annotate({
      message: "must be user, assistant or system",
    }),
    content: Schema.Array(InputPart).check(
      Schema.isMaxLength(maxParts, { message: `must be at most ${maxParts} parts` }),
    ),
  }).check(
    Schema.makeFilter(({ content, role }) => {
      const wrong = content.findIndex(({ type }) => !suits(type, role))
      return wrong < 0
        ? undefined
        : { path: ["content", wrong, "type"], issue: `must be ${partsOf[role]} in a message of the ${role}` }
    }),
  ),
  Schema.Struct({
    type: Schema.Literal("function_call"),
    id: optional(ItemId),
    call_id: optional(callId),
    name,
    arguments: partText,
  }),
  Schema.Struct({
    type: Schema.Literal("function_call_output"),
    id: optional(ItemId),
    call_id: callId,
    output: partText,
  }),
])
export type GivenItem = typeof GivenItem.Type

const status = Schema.Literals(["in_progress", "completed", "incomplete"])
type ItemStatus = typeof status.Type

const Part = Schema.Union([
  Schema.Struct({ type: Schema.Literals(["input_text", "output_text"]), text: Schema.String }),
  Schema.Struct({
    type: Schema.Literals(["input_audio", "output_audio"]),
    /** Always present; null until the speech has been transcribed. */
    transcript: Schema.NullOr(Schema.String),
  }),
  Schema.Struct({
    type: Schema.Literal("input_image"),
    image_url: Schema.String,
    detail: Schema.optionalKey(Schema.String),
  }),
])
export type ItemPart = typeof Part.Type

const common = { id: Schema.String, object: Schema.Literal("realtime.item"), status }

/** An item as the server describes it. */
export const Item = Schema.Union([
  Schema.Struct({
    ...common,
    type: Schema.Literal("message"),
    role: Schema.Literals(["user", "assistant", "system"]),
    content: Schema.Array(Part),
  }),
  Schema.Struct({
    ...common,
    type: Schema.Literal("function_call"),
    call_id: Schema.String,
    name: Schema.String,
    arguments: Schema.String,
  }),
  Schema.Struct({
    ...common,
    type: Schema.Literal("function_call_output"),
    call_id: Schema.String,
    output: Schema.String,
  }),
])
export type Item = typeof Item.Type
type MessageItem = Extract<Item, { readonly type: "message" }>

const object = "realtime.item" as const

const partOf = (part: (typeof InputPart)["Type"], role: MessageItem["role"]): ItemPart => {
  const spoken = role === "assistant" ? ("output_audio" as const) : ("input_audio" as const)
  const written = role === "assistant" ? ("output_text" as const) : ("input_text" as const)
  if ("text" in part) return { type: written, text: part.text }
  if (part.type === "input_image") {
    const { detail, image_url } = part
    return { type: "input_image", image_url, ...(typeof detail === "string" ? { detail } : {}) }
  }
  return { type: spoken, transcript: part.transcript ?? null }
}

/** The item that a client has given, with ids where it named none. */
export const itemOf = (given: GivenItem, newId: () => string): Item => {
  const id = given.id ?? `item_${newId()}`
  const about = { id, object, status: "completed" as const }
  switch (given.type) {
    case "message":
      return {
        ...about,
        type: "message",
        role: given.role,
        content: given.content.map((part) => partOf(part, given.role)),
      }
    case "function_call": {
      const { arguments: args, call_id, name } = given
      return { ...about, type: "function_call", call_id: call_id ?? `call_${newId()}`, name, arguments: args }
    }
    case "function_call_output":
      return { ...about, type: "function_call_output", call_id: given.call_id, output: given.output }
  }
}

/** A turn of the user that was spoken. */
export const spokenItem = (id: string, transcript: string | null): MessageItem => ({
  id,
  object,
  type: "message",
  role: "user",
  status: "completed",
  content: [{ type: "input_audio", transcript }],
})

/** An answer, which begins empty. */
export const answerItem = (
  id: string,
  status: ItemStatus,
  content: ReadonlyArray<ItemPart>,
): MessageItem => ({
  id,
  object,
  type: "message",
  role: "assistant",
  status,
  content,
})

export const callItem = (
  id: string,
  status: ItemStatus,
  call: { readonly callId: string; readonly name: string; readonly arguments: string },
): Item => ({
  id,
  object,
  type: "function_call",
  status,
  call_id: call.callId,
  name: call.name,
  arguments: call.arguments,
})
