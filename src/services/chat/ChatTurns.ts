// The messages of a chat request as turns of an engine. Pure. Calls and their results are matched here, so that every
// result names its call, and every call has an id and arguments that are an object.

import { countParts, parseJson } from "#domain/json/JsonText.ts"
import { InvalidRequest } from "#domain/wire/Errors.ts"
import { isObject } from "#domain/wire/text/Fields.ts"
import type { ChatMessage } from "#domain/wire/text/Messages.ts"
import type { RequestedPicture } from "#domain/wire/text/Pictures.ts"
import type { ChatTurn, ToolCall } from "#engines/protocol/Text.ts"
import { Contents, type ContentTerms } from "./MessageContent.ts"

/** Characters of all calls' arguments in a request, which are parsed. A guess: 500 calls of a thousand characters. */
export const maxArgumentChars = 512 * 1024
/** Keys, lists and objects of all calls' arguments: parsing them takes up to 0.4 µs each (measured). */
export const maxArgumentParts = 16_000

const refusal = (field: string, problem: string): InvalidRequest => new InvalidRequest({ field, problem })

/** Reads messages in their order. */
class Turns {
  readonly turns: Array<ChatTurn> = []
  /** Names of the calls so far, by id. Some servers use an id again in a later message: then the later call counts. */
  #names: Map<string, string> | undefined
  #argumentChars = 0
  #argumentParts = 0
  readonly contents: Contents

  constructor(terms: ContentTerms) {
    this.contents = new Contents(terms)
  }

  add(message: ChatMessage, path: string): InvalidRequest | undefined {
    const { role } = message
    if (role === "user") return this.#addUser(message, path)
    const content = this.#contentOf(message, path)
    if (content instanceof InvalidRequest) return content
    switch (role) {
      case "assistant":
        return this.#addAssistant(message, content, path)
      case "tool":
        return this.#addResult(message, content, path)
      case "function":
        return this.#addFunctionResult(message, content, path)
      default:
        this.turns.push({ role: "system", content })
    }
  }

  #addUser({ content }: ChatMessage, path: string): InvalidRequest | undefined {
    if (content === undefined || content === null) return refusal(`${path}.content`, "is required")
    const read = this.contents.read(content, `${path}.content`)
    if (read instanceof InvalidRequest) return read
    this.turns.push({ role: "user", content: read })
  }

  #contentOf({ content, function_call, role, tool_calls }: ChatMessage, path: string) {
    if (content === undefined || content === null) {
      const calls =
        role === "assistant" && ((tool_calls ?? []).length > 0 || (function_call ?? null) !== null)
      return calls || role === "function" ? "" : refusal(`${path}.content`, "is required")
    }
    return this.contents.readText(content, `${path}.content`, role)
  }

  #addAssistant(message: ChatMessage, content: string, path: string): InvalidRequest | undefined {
    const calls: Array<ToolCall> = []
    for (const [index, { function: called, id }] of (message.tool_calls ?? []).entries()) {
      const at = `${path}.tool_calls[${index}]`
      const call = this.#callOf(id, called, `${at}.function.arguments`)
      if (call instanceof InvalidRequest) return call
      calls.push(call)
    }
    const { function_call, reasoning_content } = message
    if (function_call !== undefined && function_call !== null && calls.length === 0) {
      // Equal in every request with this history, so that its prompt is the same and its beginning is cached.
      const id = `call_${String(this.turns.length).padStart(24, "0")}`
      const call = this.#callOf(id, function_call, `${path}.function_call.arguments`)
      if (call instanceof InvalidRequest) return call
      calls.push(call)
    }
    this.turns.push({
      role: "assistant",
      content,
      ...(reasoning_content ? { reasoning: reasoning_content } : {}),
      ...(calls.length === 0 ? {} : { calls }),
    })
  }

  #callOf(id: string, called: { readonly name: string; readonly arguments: string }, field: string) {
    // Some clients send an empty text for a function without parameters.
    const text = called.arguments.trim() === "" ? "{}" : called.arguments
    this.#argumentChars += text.length
    if (this.#argumentChars > maxArgumentChars) {
      return refusal(field, `all calls together have more than ${maxArgumentChars} characters`)
    }
    this.#argumentParts += countParts(text, maxArgumentParts)
    if (this.#argumentParts > maxArgumentParts) {
      return refusal(field, `all calls together have more than ${maxArgumentParts} keys, lists and objects`)
    }
    const parsed = parseJson(text)
    if (!("value" in parsed)) return refusal(field, parsed.problem)
    if (!isObject(parsed.value)) return refusal(field, "must be the JSON text of an object")
    this.#names ??= new Map()
    this.#names.set(id, called.name)
    return { id, name: called.name, arguments: text }
  }

  #addResult({ tool_call_id }: ChatMessage, content: string, path: string) {
    const field = `${path}.tool_call_id`
    if (tool_call_id === undefined || tool_call_id === null) return refusal(field, "is required")
    const name = this.#names?.get(tool_call_id)
    if (name === undefined) return refusal(field, "no earlier message has a call of this id")
    this.turns.push({ role: "tool", content, callId: tool_call_id, name })
  }

  #addFunctionResult({ name }: ChatMessage, content: string, path: string) {
    const field = `${path}.name`
    if (name === undefined || name === null) return refusal(field, "is required")
    const call = [...(this.#names ?? [])].findLast(([, called]) => called === name)
    if (call === undefined) return refusal(field, "no earlier message has a call of this function")
    this.turns.push({ role: "tool", content, callId: call[0], name })
  }
}

interface ReadMessages {
  readonly turns: ReadonlyArray<ChatTurn>
  /** The turns refer to them by their index. */
  readonly pictures: ReadonlyArray<RequestedPicture>
}

/** The turns, or what is wrong with the first message that cannot be used. */
export const turnsOf = (
  messages: ReadonlyArray<ChatMessage>,
  terms: ContentTerms,
): ReadMessages | InvalidRequest => {
  const turns = new Turns(terms)
  for (const [index, message] of messages.entries()) {
    const problem = turns.add(message, `messages[${index}]`)
    if (problem !== undefined) return problem
  }
  return { turns: turns.turns, pictures: turns.contents.pictures }
}
