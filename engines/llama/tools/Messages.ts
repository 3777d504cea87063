// Turns and tools as the variables of a chat template.
import { partsOf } from "../../protocol/Contents.ts"
import type { ChatTurn, Tool, ToolCall } from "../../protocol/Text.ts"
import { definitionOf, withDefinitions } from "./GeneralForm.ts"
import type { Places } from "./places/Places.ts"
import type { CallSyntax } from "./syntax/CallSyntax.ts"
import { itemsOf, membersOf, respaced } from "./syntax/JsonText.ts"
import { mostNested } from "./syntax/MarkedText.ts"
import type { ToolVariables } from "./ToolFamily.ts"

/** What a template expects. Found by rendering an example, see Probe. */
export interface TemplateForm {
  /** `text`: arguments are JSON text; `object`: an object whose values are read one by one. */
  readonly arguments: "text" | "object"
  /** The content of a message that has calls and no text. */
  readonly emptyContent: "" | null
  /** False: a message has one call at most. */
  readonly several: boolean
  /** False: the template does not print tools, so they are written into the system message. */
  readonly definitions: boolean
  /** False: text before a call is left out, because the template would print it behind the calls. */
  readonly textBefore: boolean
  /** `inside`: the template reads results from the message with the calls (`tool_responses`), and the answer to them too. */
  readonly results: "messages" | "inside"
  /** The reasoning of a message with calls and no reasoning. Templates print an empty block for a line break. */
  readonly emptyReasoning: string | undefined
}

type Assistant = Extract<ChatTurn, { role: "assistant" }>

/** Each call with its result as messages of their own, for templates that know one call in a message. */
const oneByOne = (turns: ReadonlyArray<ChatTurn>): ReadonlyArray<ChatTurn> => {
  const apart: Array<ChatTurn> = []
  for (let at = 0; at < turns.length; at++) {
    const turn = turns[at]
    if (turn === undefined) break
    if (turn.role !== "assistant" || turn.calls === undefined || turn.calls.length < 2) {
      apart.push(turn)
      continue
    }
    const results: Array<Extract<ChatTurn, { role: "tool" }>> = []
    for (let next = turns[at + 1]; next?.role === "tool"; next = turns[++at + 1]) results.push(next)
    const ids = new Set(turn.calls.map(({ id }) => id))
    for (const [number, call] of turn.calls.entries()) {
      apart.push(
        number === 0 ? { ...turn, calls: [call] } : { role: "assistant", content: "", calls: [call] },
      )
      apart.push(...results.filter(({ callId }) => callId === call.id))
    }
    apart.push(...results.filter(({ callId }) => !ids.has(callId)))
  }
  return apart
}

export const plainMessage = (turn: ChatTurn, places: Places): Record<string, unknown> => {
  const reasoning = turn.role === "assistant" ? (turn.reasoning ?? "") : ""
  return {
    role: turn.role,
    content: partsOf(turn.content)
      .map((part) => (part.kind === "text" ? places.content(part.text) : places.picture(part.picture)))
      .join(""),
    ...(reasoning === "" ? {} : { reasoning_content: places.text(reasoning) }),
  }
}

const argumentsOf = (
  syntax: CallSyntax,
  form: TemplateForm,
  call: ToolCall,
  tools: ReadonlyArray<Tool>,
  places: Places,
) => {
  if (form.arguments === "text") return places.json(respaced(call.arguments))
  if (syntax.marker !== undefined) return markedObject(call.arguments, syntax.marker, places)
  const tool = tools.find(({ name }) => name === call.name)
  const members = membersOf(call.arguments).map(([key, json]) => {
    const { kind, text } = syntax.argument(tool, key, json)
    return [places.guarded(key), kind === "text" ? places.text(text) : places.json(text)]
  })
  return Object.fromEntries(members)
}

/**
 * Arguments as an object whose texts and other values the template prints, see `CallSyntax.marker`. Keys are marks too, so they
 * keep their order though the template sorts them.
 */
const markedObject = (json: string, marker: string, places: Places): Record<string, unknown> => {
  const valueOf = (value: string, depth: number): unknown => {
    if (value.startsWith('"')) return places.text(JSON.parse(value) as string)
    if (depth >= mostNested) return places.json(value, marker)
    if (value.startsWith("[")) return itemsOf(value).map((item) => valueOf(item, depth + 1))
    return value.startsWith("{") ? objectOf(value, depth + 1) : places.json(value, marker)
  }
  const objectOf = (value: string, depth: number): Record<string, unknown> =>
    Object.fromEntries(membersOf(value).map(([key, member]) => [places.text(key), valueOf(member, depth)]))
  return objectOf(json, 1)
}

/** Messages with calls that have the results and the answer which follow them. */
const withResults = (
  turns: ReadonlyArray<ChatTurn>,
  messageOf: (turn: ChatTurn) => Record<string, unknown>,
  places: Places,
): ReadonlyArray<Record<string, unknown>> => {
  const messages: Array<Record<string, unknown>> = []
  let responses: Array<{ readonly name: string; readonly response: string }> | undefined
  for (const turn of turns) {
    const calls = turn.role === "assistant" ? (turn.calls ?? []) : []
    if (turn.role === "tool" && responses !== undefined) {
      responses.push({ name: places.guarded(turn.name), response: places.content(turn.content) })
    } else if (turn.role === "assistant" && calls.length === 0 && responses !== undefined) {
      messages.splice(-1, 1, { ...messages.at(-1), content: places.content(turn.content) })
      responses = undefined
    } else {
      responses = calls.length > 0 ? [] : undefined
      messages.push({ ...messageOf(turn), ...(responses === undefined ? {} : { tool_responses: responses }) })
    }
  }
  return messages
}

/** Calls one by one and definitions in the system message, for templates that need it. */
export const preparedTurns = (
  syntax: CallSyntax,
  form: TemplateForm,
  turns: ReadonlyArray<ChatTurn>,
  tools: ReadonlyArray<Tool>,
): ReadonlyArray<ChatTurn> => {
  const single = form.several ? turns : oneByOne(turns)
  return form.definitions ? single : withDefinitions(single, tools, syntax)
}

/** Of prepared turns. */
export const templateVariables = (
  syntax: CallSyntax,
  form: TemplateForm,
  turns: ReadonlyArray<ChatTurn>,
  tools: ReadonlyArray<Tool>,
  places: Places,
): ToolVariables => {
  /** The ids of the calls of the last message with calls, as the template gets them. */
  const ids = new Map<string, string>()
  const idOf = (id: string) => ids.get(id) ?? places.guarded(id)

  const withCalls = (turn: Assistant, calls: ReadonlyArray<ToolCall>) => {
    for (const [at, { id, name }] of calls.entries())
      if (syntax.idOf !== undefined) ids.set(id, syntax.idOf(at, name))
    const reasoning = turn.reasoning ?? ""
    const thought = reasoning === "" ? form.emptyReasoning : places.text(reasoning)
    return {
      role: "assistant",
      content: turn.content === "" || !form.textBefore ? form.emptyContent : places.text(turn.content),
      ...(thought === undefined ? {} : { reasoning_content: thought }),
      tool_calls: calls.map((call) => ({
        id: idOf(call.id),
        type: "function",
        function: {
          name: places.guarded(call.name),
          arguments: argumentsOf(syntax, form, call, tools, places),
        },
      })),
    }
  }

  const messageOf = (turn: ChatTurn): Record<string, unknown> => {
    if (turn.role === "tool")
      return {
        role: "tool",
        name: places.guarded(turn.name),
        tool_call_id: idOf(turn.callId),
        content: places.content(turn.content),
      }
    const calls = turn.role === "assistant" ? (turn.calls ?? []) : []
    return turn.role === "assistant" && calls.length > 0 ? withCalls(turn, calls) : plainMessage(turn, places)
  }

  const messages = form.results === "inside" ? withResults(turns, messageOf, places) : turns.map(messageOf)
  if (!form.definitions || tools.length === 0) return { messages }
  const definitions = tools.map((tool) => {
    const { type, function: defined } = definitionOf(tool)
    return {
      type,
      function: {
        name: places.guarded(defined.name),
        description: places.guarded(defined.description),
        parameters: places.guardedJson(syntax.parameters?.(defined.parameters) ?? defined.parameters),
      },
    }
  })
  return { messages, tools: definitions }
}
