// Tools for models whose template knows none, or that have no template: definitions and instructions are part of the system
// message, calls part of the answer's text, results are user messages.
import type { ChatTurn, Tool } from "../../protocol/Text.ts"
import type { CallSyntax } from "./syntax/CallSyntax.ts"
import { jsonCalls } from "./syntax/JsonCalls.ts"
import { respaced } from "./syntax/JsonText.ts"

/** The form of Hermes, which most open models have seen. */
export const generalCalls: CallSyntax = jsonCalls({
  openers: ["<tool_call>"],
  head: '\n{"name": "',
  middle: '", "arguments": ',
  tail: "}\n</tool_call>",
  next: '\n<tool_call>\n{"name": "',
  close: "",
  markers: ["<tool_call>", "</tool_call>"],
})

export const definitionOf = ({ name, description, parameters }: Tool) => ({
  type: "function",
  function: { name, description: description ?? "", parameters },
})

/** An example of a call, in the syntax of the family. */
const example = (syntax: CallSyntax) =>
  syntax.write([{ name: "function_name", arguments: '{"argument": "value"}' }], [])

const instructions = (tools: ReadonlyArray<Tool>, syntax: CallSyntax): string =>
  [
    "# Tools",
    "",
    "You may call functions to assist with the request. These are their signatures, one a line:",
    "<tools>",
    ...tools.map((tool) => respaced(JSON.stringify(definitionOf(tool)))),
    "</tools>",
    "",
    "To call a function, reply with its name and its arguments in this form, and with nothing after it:",
    example(syntax),
  ].join("\n")

/** The turns with the definitions of the tools at the end of the system message. */
export const withDefinitions = (
  turns: ReadonlyArray<ChatTurn>,
  tools: ReadonlyArray<Tool>,
  syntax: CallSyntax,
): ReadonlyArray<ChatTurn> => {
  if (tools.length === 0) return turns
  const [first, ...others] = turns
  const text = instructions(tools, syntax)
  return first?.role === "system"
    ? [{ role: "system", content: `${first.content}\n\n${text}` }, ...others]
    : [{ role: "system", content: text }, ...turns]
}

/** The turns as messages of text only. Results that follow each other are one message. */
export const plainTurns = (
  turns: ReadonlyArray<ChatTurn>,
  tools: ReadonlyArray<Tool>,
): ReadonlyArray<ChatTurn> => {
  const plain: Array<ChatTurn> = []
  let results: string | undefined
  for (const turn of withDefinitions(turns, tools, generalCalls)) {
    if (turn.role === "tool") {
      const result = `<tool_response>\n${turn.content}\n</tool_response>`
      results = results === undefined ? result : `${results}\n${result}`
      continue
    }
    if (results !== undefined) plain.push({ role: "user", content: results })
    results = undefined
    if (turn.role !== "assistant" || turn.calls === undefined || turn.calls.length === 0) {
      plain.push(turn)
      continue
    }
    const calls = generalCalls.write(turn.calls, tools)
    const { content, reasoning } = turn
    plain.push({
      role: "assistant",
      content: content === "" ? calls : `${content}\n${calls}`,
      ...(reasoning === undefined ? {} : { reasoning }),
    })
  }
  if (results !== undefined) plain.push({ role: "user", content: results })
  return plain
}
