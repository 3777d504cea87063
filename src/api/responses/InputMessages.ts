// The input of a Responses request as messages of a chat, so that both endpoints share everything behind them. Pure.
import { Schema } from "effect"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import type { InputItem, Part, ResponsesRequest } from "#domain/wire/responses/Request.ts"
import { name as functionName } from "#domain/wire/text/Fields.ts"
import type { ChatMessage, MessagePart } from "#domain/wire/text/Messages.ts"

type Content = NonNullable<ChatMessage["content"]>
type Call = NonNullable<ChatMessage["tool_calls"]>[number]

/** Where the parts of a message stand in the request, for errors. */
interface Places {
  readonly content: string
  readonly callId: string
  readonly calls: Array<string>
}

interface Placed {
  readonly message: ChatMessage
  /** The calls of `message`: later items may add to them. */
  readonly calls: Array<Call>
  readonly places: Places
}

const refusal = (field: string, problem: string): InvalidRequest => new InvalidRequest({ field, problem })
const required = (field: string): InvalidRequest => refusal(field, "is required")

const isName = Schema.is(functionName)

const textTypes = new Set(["input_text", "output_text", "text", "summary_text", "reasoning_text"])

const pictureOf = ({ detail, file_id, image_url }: Part, path: string): MessagePart | InvalidRequest => {
  if ((file_id ?? null) !== null)
    return refusal(`${path}.file_id`, "must be absent: nothing is stored, send image_url")
  if (image_url === undefined || image_url === null) return required(`${path}.image_url`)
  return { type: "image_url", image_url: { url: image_url, ...(detail === undefined ? {} : { detail }) } }
}

/** Parts that are not text keep their type, so that the model's refusal of them is that of chat. */
const contentOf = (content: string | ReadonlyArray<Part>, path: string): Content | InvalidRequest => {
  if (typeof content === "string") return content
  const parts: Array<MessagePart> = []
  for (const [index, part] of content.entries()) {
    const { refusal: refused, text, type } = part
    if (type === "input_image") {
      const picture = pictureOf(part, `${path}[${index}]`)
      if (picture instanceof InvalidRequest) return picture
      parts.push(picture)
      continue
    }
    const isText = textTypes.has(type)
    const said = type === "refusal" ? refused : isText ? text : undefined
    if (isText && typeof said !== "string") return required(`${path}[${index}].text`)
    parts.push(typeof said === "string" ? { type: "text", text: said } : { type })
  }
  return parts
}

/** Texts of a reasoning item: those of its content, or else those of its summary. */
const thoughtsOf = ({ content, summary }: InputItem): string => {
  const parts = typeof content === "string" ? [] : (content ?? [])
  const texts = (parts.length > 0 ? parts : (summary ?? [])).map(({ text }) => text ?? "")
  return texts.join("\n\n")
}

const storedItem =
  "refers to a stored item and nothing is stored: send the item itself (clients with store: false do)"
const otherItem = "must be message, function_call, function_call_output or reasoning"

/** Reads items in their order. */
class Messages {
  readonly placed: Array<Placed> = []
  /** Of reasoning items that the next assistant item belongs to. */
  #thoughts: Array<string> = []

  push(message: ChatMessage, content: string, callId = content): Placed {
    const calls: Array<Call> = []
    const reasoning = this.#thoughts.join("\n\n")
    this.#thoughts = []
    const hasThoughts = message.role === "assistant" && reasoning !== ""
    const made: Placed = {
      message: {
        ...message,
        ...(hasThoughts ? { reasoning_content: reasoning } : {}),
        ...(message.role === "assistant" ? { tool_calls: calls } : {}),
      },
      calls,
      places: { content, callId, calls: [] },
    }
    this.placed.push(made)
    return made
  }

  add(item: InputItem, path: string): InvalidRequest | undefined {
    switch (item.type ?? "message") {
      case "message":
        return this.#addMessage(item, path)
      case "function_call":
        return this.#addCall(item, path)
      case "function_call_output":
        return this.#addResult(item, path)
      case "reasoning":
        this.#thoughts.push(thoughtsOf(item))
        return undefined
      case "item_reference":
        return refusal(`${path}.type`, storedItem)
      default:
        return refusal(`${path}.type`, otherItem)
    }
  }

  #addMessage({ content, role }: InputItem, path: string): InvalidRequest | undefined {
    if (role === undefined || role === null) return required(`${path}.role`)
    if (content === undefined || content === null) return required(`${path}.content`)
    const read = contentOf(content, `${path}.content`)
    if (read instanceof InvalidRequest) return read
    this.push({ role, content: read }, `${path}.content`)
  }

  /** Calls of one reply are calls of one message, that with the text before them if there is one. */
  #addCall({ arguments: text, call_id, name }: InputItem, path: string): InvalidRequest | undefined {
    if (!call_id) return required(`${path}.call_id`)
    if (name === undefined || name === null) return required(`${path}.name`)
    if (!isName(name)) {
      return refusal(`${path}.name`, "must be 1 to 64 letters, digits, underscores and hyphens")
    }
    if (text === undefined || text === null) return required(`${path}.arguments`)
    const last = this.placed.at(-1)
    const isOpen = last?.message.role === "assistant" && this.#thoughts.length === 0
    const at = isOpen ? last : this.push({ role: "assistant", content: null }, path)
    at.calls.push({ id: call_id, type: "function", function: { name, arguments: text } })
    at.places.calls.push(path)
  }

  #addResult({ call_id, output }: InputItem, path: string): InvalidRequest | undefined {
    if (!call_id) return required(`${path}.call_id`)
    if (output === undefined || output === null) return required(`${path}.output`)
    const content = contentOf(output, `${path}.output`)
    if (content instanceof InvalidRequest) return content
    this.push({ role: "tool", tool_call_id: call_id, content }, `${path}.output`, `${path}.call_id`)
  }
}

interface InputMessages {
  readonly messages: ReadonlyArray<ChatMessage>
  /** The name in the request of a field like `messages[3].content`. */
  readonly nameOf: (field: string) => string
}

const names = (placed: ReadonlyArray<Placed>) => (field: string) => {
  const [, index, rest = ""] = /^messages\[(\d+)\]\.(.*)$/s.exec(field) ?? []
  const places = index === undefined ? undefined : placed[Number(index)]?.places
  if (places === undefined) return "input"
  const [, parts] = /^content(.*)$/.exec(rest) ?? []
  if (parts !== undefined) return places.content + parts.replace(".image_url.detail", ".detail")
  if (rest === "tool_call_id") return places.callId
  const [, call] = /^tool_calls\[(\d+)\]/.exec(rest) ?? []
  return call === undefined ? places.content : `${places.calls[Number(call)] ?? "input"}.arguments`
}

/** The messages, or what is wrong with the first item that cannot be used. */
export const inputMessages = ({
  input,
  instructions,
}: Pick<ResponsesRequest, "input" | "instructions">): InputMessages | InvalidRequest => {
  const messages = new Messages()
  if (typeof instructions === "string") {
    messages.push({ role: "system", content: instructions }, "instructions")
  }
  if (typeof input === "string") messages.push({ role: "user", content: input }, "input")
  else {
    for (const [index, item] of input.entries()) {
      const problem = messages.add(item, `input[${index}]`)
      if (problem !== undefined) return problem
    }
  }
  const { placed } = messages
  if (placed.length === 0) return refusal("input", "must not be empty")
  return { messages: placed.map(({ message }) => message), nameOf: names(placed) }
}
