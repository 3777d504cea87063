// What the language model reads of a conversation: a chat request made of the instructions, the items and the tools. Pure.
import type { Item, ItemPart } from "#domain/conversation/Items.ts"
import type { ConversationTool, ToolChoice } from "#domain/conversation/Settings.ts"
import type { ChatRequest } from "#domain/wire/Chat.ts"
import type { ChatMessage } from "#domain/wire/text/Messages.ts"

interface PromptTerms {
  readonly model: string
  readonly instructions: string
  readonly items: ReadonlyArray<Item>
  readonly tools: ReadonlyArray<ConversationTool>
  readonly toolChoice: ToolChoice
  readonly maxTokens: number
}

const textOf = (parts: ReadonlyArray<ItemPart>): string =>
  parts
    .flatMap((part) => {
      if (part.type === "input_image") return []
      const text = "text" in part ? part.text : (part.transcript ?? "")
      return text.trim() === "" ? [] : [text]
    })
    .join("\n")

const picturesOf = (parts: ReadonlyArray<ItemPart>) =>
  parts.flatMap((part) =>
    part.type === "input_image"
      ? [
          {
            type: "image_url" as const,
            image_url: { url: part.image_url, ...(part.detail === undefined ? {} : { detail: part.detail }) },
          },
        ]
      : [],
  )

/** An item without words, for example speech that was not understood, is left out. */
const messageOf = (item: Item): ChatMessage | undefined => {
  if (item.type === "function_call") {
    const { arguments: args, call_id, name } = item
    return { role: "assistant", tool_calls: [{ id: call_id, function: { name, arguments: args } }] }
  }
  if (item.type === "function_call_output") {
    return { role: "tool", tool_call_id: item.call_id, content: item.output }
  }
  const text = textOf(item.content)
  const pictures = item.role === "user" ? picturesOf(item.content) : []
  if (pictures.length > 0) {
    const words = text === "" ? [] : [{ type: "text" as const, text }]
    return { role: item.role, content: [...pictures, ...words] }
  }
  return text === "" ? undefined : { role: item.role, content: text }
}

/** A call belongs to the message before it: templates know calls as a part of an assistant's message. */
const joined = (messages: ReadonlyArray<ChatMessage>): ReadonlyArray<ChatMessage> => {
  const all: Array<ChatMessage> = []
  for (const message of messages) {
    const last = all.at(-1)
    const { tool_calls } = message
    if (last?.role === "assistant" && tool_calls) {
      all[all.length - 1] = { ...last, tool_calls: [...(last.tool_calls ?? []), ...tool_calls] }
    } else all.push(message)
  }
  return all
}

/** Without the outputs whose call is not among the items before: it was deleted, or cut away. A template refuses them. */
const withCalls = (items: ReadonlyArray<Item>): ReadonlyArray<Item> => {
  const calls = new Set<string>()
  return items.filter((item) => {
    if (item.type === "function_call") calls.add(item.call_id)
    return item.type !== "function_call_output" || calls.has(item.call_id)
  })
}

const choiceOf = (choice: ToolChoice): NonNullable<ChatRequest["tool_choice"]> => {
  const name = typeof choice === "string" ? choice : choice.name
  if (typeof choice === "string" && (name === "auto" || name === "none" || name === "required")) return name
  return { type: "function", function: { name } }
}

/** Tools of other types are of other servers. */
const functionsOf = (tools: ReadonlyArray<ConversationTool>) =>
  tools.flatMap(({ description, name, parameters, type }) =>
    name === undefined || (type ?? "function") !== "function"
      ? []
      : [
          {
            type: "function",
            function: { name, description: description ?? null, parameters: parameters ?? null },
          },
        ],
  )

export const chatRequestOf = (terms: PromptTerms): ChatRequest => {
  const { instructions, items, maxTokens, model, toolChoice } = terms
  const system: ReadonlyArray<ChatMessage> =
    instructions.trim() === "" ? [] : [{ role: "system", content: instructions }]
  const messages = joined([...system, ...withCalls(items).flatMap((item) => messageOf(item) ?? [])])
  const tools = functionsOf(terms.tools)
  return {
    model,
    messages: messages.length === 0 ? [{ role: "user", content: "" }] : messages,
    max_tokens: maxTokens,
    ...(tools.length === 0 ? {} : { tools, tool_choice: choiceOf(toolChoice) }),
  }
}
