// Turns and tools as the variables of a chat template.
import { partsOf } from "../../protocol/Contents.ts"
import type { ChatTurn, Tool, ToolCall } from "../../protocol/Text.ts"
import { definitionOf, withDefinitions } from "./GeneralForm.ts"
import { membersOf, respaced } from "./JsonText.ts"
import type { Places } from "./Places.ts"
import type { CallSyntax, ToolVariables } from "./ToolFamily.ts"

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
  const tool = tools.find(({ name }) => name === call.name)
  const members = membersOf(call.arguments).map(([key, json]) => {
    const { kind, text } = syntax.argument(tool, key, json)
    return [places.guarded(key), kind === "text" ? places.text(text) : places.json(text)]
  })
  return Object.fromEntries(members)
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
    for (const [at, { id }] of calls.entries()) if (syntax.idOf !== undefined) ids.set(id, syntax.idOf(at))
    const reasoning = turn.reasoning ?? ""
    const thought = reasoning === "" ? form.emptyReasoning : places.text(reasoning)
    return {
      role: "assistant",
      content: turn.content === "" ? form.emptyContent : places.text(turn.content),
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

  const messages = turns.map(messageOf)
  if (!form.definitions || tools.length === 0) return { messages }
  const definitions = tools.map((tool) => {
    const { type, function: defined } = definitionOf(tool)
    return {
      type,
      function: {
        name: places.guarded(defined.name),
        description: places.guarded(defined.description),
        parameters: places.guardedJson(defined.parameters),
      },
    }
  })
  return { messages, tools: definitions }
}
