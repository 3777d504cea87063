// Calls as Qwen3-Coder and Qwen3.5 write them:
// <tool_call>
// <function=name>
// <parameter=key>
// value
// </parameter>
// </function>
// </tool_call>
import type { Tool, ToolUse } from "../../protocol/Text.ts"
import type { Expression } from "../grammar/Expression.ts"
import { plainTexts } from "../grammar/PlainTexts.ts"
import {
  any,
  automaton,
  callable,
  choice,
  optional,
  RuleBook,
  sequence,
  shapeOf,
  text,
  without,
} from "./Expressions.ts"
import { membersOf } from "./JsonText.ts"
import { type ArgumentsOf, type CallSyntax, ToolNotHeld, type WrittenCall } from "./ToolFamily.ts"
import { XmlReader } from "./XmlReader.ts"
import { closer, isWritable, notReadable, type Property, propertiesOf } from "./XmlSchema.ts"

export const xmlForm = {
  opener: "<tool_call>",
  head: "\n<function=",
  afterName: ">\n",
  parameter: "<parameter=",
  afterKey: ">\n",
  closer,
  afterValue: "\n",
  tail: "</function>\n</tool_call>",
  next: "\n<tool_call>\n<function=",
} as const

const anyText = without(closer)

const notHeld = (tool: number, path: string) =>
  new ToolNotHeld(tool, path, "this model's calls cannot be held to this part of a strict schema")

/** A tool whose arguments are written. */
interface Held {
  readonly tool: Tool
  readonly index: number
  readonly book: RuleBook
  readonly argumentsOf: ArgumentsOf
}

/** Texts are written without quotes, other values by the rules of their schema. */
const valueOf = (property: Property, at: number, { tool, index, book, argumentsOf }: Held): Expression => {
  const rules = () => argumentsOf({ ...tool, parameters: property.schema() }, `tool${index}.${at}.`)
  if (!property.text) return book.include(rules())
  if (property.only === undefined && property.restricted === undefined) return automaton(anyText)
  if (property.restricted === undefined) return choice((property.only ?? []).map(text))
  const restricted = property.only === undefined ? plainTexts(rules(), anyText) : undefined
  if (restricted !== undefined) return automaton(restricted)
  if (tool.strict) throw notHeld(index, property.restricted)
  return property.only === undefined ? automaton(anyText) : choice(property.only.map(text))
}

const argumentsOfTool = (held: Held): Expression => {
  const { tool, index, argumentsOf } = held
  // Its rules are not used: this finds what is wrong with the schema, with paths from its root.
  argumentsOf(tool, `tool${index}.`)
  const keyword = notReadable(tool)
  if (tool.strict && keyword !== undefined) throw notHeld(index, keyword)
  const blocks = propertiesOf(tool).flatMap((property, at): ReadonlyArray<Expression> => {
    const { key, required } = property
    if (!isWritable(key)) {
      if (tool.strict) throw notHeld(index, `properties.${key}`)
      return []
    }
    const { parameter, afterKey, afterValue } = xmlForm
    const value = valueOf(property, at, held)
    const block = sequence(text(parameter + key + afterKey), value, text(closer + afterValue))
    return [required ? block : optional(block)]
  })
  return sequence(...blocks)
}

const replies = (use: ToolUse, argumentsOf: ArgumentsOf) => {
  const book = new RuleBook()
  const calls = callable(use).map(([index, tool]) =>
    sequence(
      text(tool.name + xmlForm.afterName),
      book.define(`tool${index}.`, argumentsOfTool({ tool, index, book, argumentsOf })),
    ),
  )
  const one = book.define("call", sequence(choice(calls), text(xmlForm.tail)))
  const several = use.parallel && typeof use.choice === "string"
  const rest = sequence(text(xmlForm.head), one, ...(several ? [any(sequence(text(xmlForm.next), one))] : []))
  return shapeOf(book, { openers: [xmlForm.opener], atStart: false, auto: use.choice === "auto" }, rest)
}

/** Texts without quotes where the schema says that they are texts, or where no schema is known. */
const argument: CallSyntax["argument"] = (tool, key, json) => {
  const property = tool && propertiesOf(tool).find((known) => known.key === key)
  const plain = json.startsWith('"') && property?.text !== false
  return plain ? { kind: "text", text: JSON.parse(json) as string } : { kind: "json", text: json }
}

const write = (calls: ReadonlyArray<WrittenCall>, tools: ReadonlyArray<Tool>): string => {
  const written = calls.map((call) => {
    const tool = tools.find(({ name }) => name === call.name)
    const blocks = membersOf(call.arguments).map(
      ([key, json]) =>
        xmlForm.parameter +
        key +
        xmlForm.afterKey +
        argument(tool, key, json).text +
        closer +
        xmlForm.afterValue,
    )
    return call.name + xmlForm.afterName + blocks.join("") + xmlForm.tail
  })
  return xmlForm.opener + xmlForm.head + written.join(xmlForm.next)
}

export const xmlCalls: CallSyntax = {
  openers: [xmlForm.opener],
  several: true,
  markers: ["<tool_call>", "</tool_call>"],
  write,
  argument,
  replies,
  parser: (tools, hasFormat) => new XmlReader(tools, xmlForm, hasFormat),
}
