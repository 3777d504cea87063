// The call syntax of known model families, and which of them a template belongs to.
import type { ChatTurn } from "../../protocol/Text.ts"
import { generalCalls, plainTurns } from "./GeneralForm.ts"
import { jsonCalls } from "./JsonCalls.ts"
import { plainMessage, preparedTurns, templateVariables } from "./Messages.ts"
import type { Places } from "./Places.ts"
import { probed } from "./Probe.ts"
import type { CallSyntax, ToolFamily, ToolVariables } from "./ToolFamily.ts"
import { xmlCalls } from "./XmlCalls.ts"

export interface KnownFamily {
  readonly name: string
  readonly syntax: CallSyntax
  /** Texts that the templates of the family have. */
  readonly knownBy: ReadonlyArray<string>
}

const mistralMarkers = ["[TOOL_CALLS]", "[ARGS]", "[CALL_ID]"]

/** Mistral's templates want ids of nine letters or digits. They are numbered, so that they need not be sampled. */
const mistralId = (call: number): string => `call${String(call).padStart(5, "0")}`

const deepSeekMarkers = [
  "<｜tool▁calls▁begin｜>",
  "<｜tool▁call▁begin｜>",
  "<｜tool▁sep｜>",
  "<｜tool▁call▁end｜>",
  "<｜tool▁calls▁end｜>",
]

export const knownFamilies: ReadonlyArray<KnownFamily> = [
  {
    name: "deepseek-r1",
    knownBy: ["<｜tool▁calls▁begin｜>", "```json"],
    syntax: jsonCalls({
      openers: ["<｜tool▁calls▁begin｜>"],
      head: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
      middle: "\n```json\n",
      tail: "\n```<｜tool▁call▁end｜>",
      next: "\n<｜tool▁call▁begin｜>function<｜tool▁sep｜>",
      close: "<｜tool▁calls▁end｜>",
      markers: deepSeekMarkers,
    }),
  },
  {
    name: "deepseek-v3.1",
    knownBy: ["<｜tool▁calls▁begin｜>"],
    syntax: jsonCalls({
      openers: ["<｜tool▁calls▁begin｜>"],
      head: "<｜tool▁call▁begin｜>",
      middle: "<｜tool▁sep｜>",
      tail: "<｜tool▁call▁end｜>",
      next: "<｜tool▁call▁begin｜>",
      close: "<｜tool▁calls▁end｜>",
      markers: deepSeekMarkers,
    }),
  },
  {
    name: "mistral-call-id",
    knownBy: ["[TOOL_CALLS]", "[CALL_ID]", "[ARGS]"],
    syntax: jsonCalls({
      openers: ["[TOOL_CALLS]"],
      head: "",
      middle: (call) => `[CALL_ID]${mistralId(call)}[ARGS]`,
      tail: "",
      next: "[TOOL_CALLS]",
      close: "",
      markers: mistralMarkers,
      idOf: mistralId,
    }),
  },
  {
    name: "mistral-args",
    knownBy: ["[TOOL_CALLS]", "[ARGS]"],
    syntax: jsonCalls({
      openers: ["[TOOL_CALLS]"],
      head: "",
      middle: "[ARGS]",
      tail: "",
      next: "[TOOL_CALLS]",
      close: "",
      markers: mistralMarkers,
      idOf: mistralId,
    }),
  },
  {
    name: "mistral",
    knownBy: ["[TOOL_CALLS]"],
    syntax: jsonCalls({
      openers: ["[TOOL_CALLS]"],
      head: '[{"name": "',
      middle: '", "arguments": ',
      tail: (call) => `, "id": "${mistralId(call)}"}`,
      next: ', {"name": "',
      close: "]",
      markers: mistralMarkers,
      idOf: mistralId,
    }),
  },
  { name: "qwen-xml", knownBy: ["<tool_call>", "<function="], syntax: xmlCalls },
  { name: "hermes", knownBy: ["<tool_call>"], syntax: generalCalls },
  {
    name: "llama3",
    knownBy: ["<|start_header_id|>", '"parameters": '],
    syntax: jsonCalls({
      // Some Llama models copy `"type": "function"` from the definitions.
      openers: ['{"name": "', '{"type": "function", "name": "'],
      atStart: true,
      head: "",
      middle: '", "parameters": ',
      tail: "}",
      close: "",
    }),
  },
]

/** The family for templates that know no tools, and for models without a template. */
export const generalFamily: ToolFamily = {
  name: "general",
  historyMatches: true,
  markers: generalCalls.markers,
  prepared: plainTurns,
  variables: (turns, _tools, places) => ({ messages: turns.map((turn) => plainMessage(turn, places)) }),
  replies: generalCalls.replies,
  parser: generalCalls.parser,
}

/** Renders the template with these variables and what the model itself defines, or throws. */
export type RenderMessages = (variables: ToolVariables) => string

/**
 * The family of a template: the first whose texts the source has, and whose calls the template prints as the family writes
 * them. Tried by rendering examples.
 */
export const familyOf = (source: string, render: RenderMessages, places: () => Places): ToolFamily => {
  for (const { name, syntax, knownBy } of knownFamilies) {
    if (!knownBy.every((text) => source.includes(text))) continue
    const form = probed(syntax, render, places)
    if (form === undefined) continue
    return {
      name,
      historyMatches: form.historyMatches,
      markers: syntax.markers,
      prepared: (turns, tools) => preparedTurns(syntax, form, turns, tools),
      variables: (turns, tools, own) => templateVariables(syntax, form, turns, tools, own),
      replies: syntax.replies,
      parser: syntax.parser,
    }
  }
  return { ...generalFamily, historyMatches: continuesPlainly(render, places) }
}

/** For the general form: whether the history continues the prompt of a reply as the reply was written. */
const continuesPlainly = (render: RenderMessages, newPlaces: () => Places): boolean => {
  const text = (turns: ReadonlyArray<ChatTurn>) => {
    const places = newPlaces()
    const messages = turns.map((turn) => plainMessage(turn, places))
    return places
      .parts(render({ messages }))
      .map((part) => part.text)
      .join("")
  }
  const user: ChatTurn = { role: "user", content: "Hello" }
  const reply = generalCalls.write([{ name: "probe", arguments: "{}" }], [])
  try {
    return text([user, { role: "assistant", content: reply }, user]).startsWith(text([user]) + reply)
  } catch {
    return false
  }
}
