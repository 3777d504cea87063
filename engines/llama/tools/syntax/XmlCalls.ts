// Calls whose arguments stand one by one between tags: Qwen3-Coder, Qwen3.5 and GLM.

import type { Expression } from "../../../grammar/Expression.ts"
import { plainTexts } from "../../../grammar/PlainTexts.ts"
import { without } from "../../../grammar/Without.ts"
import type { Tool, ToolUse } from "../../../protocol/Text.ts"
import { type TextKeys, type XmlForm, XmlReader } from "../readers/XmlReader.ts"
import { type ArgumentsOf, type CallSyntax, ToolNotHeld, type WrittenCall } from "./CallSyntax.ts"
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
} from "./Expressions.ts"
import { membersOf } from "./JsonText.ts"
import { isWritable, notReadable, type Property, propertiesOf } from "./XmlSchema.ts"

const notHeld = (tool: number, path: string) =>
  new ToolNotHeld(tool, path, "this model's calls cannot be held to this part of a strict schema")

/** A tool whose arguments are written. */
interface Held {
  readonly tool: Tool
  readonly index: number
  readonly book: RuleBook
  readonly argumentsOf: ArgumentsOf
  readonly form: XmlForm
}

/** Texts are written without quotes, other values by the rules of their schema. */
const valueOf = (
  property: Property,
  at: number,
  { tool, index, book, argumentsOf, form }: Held,
): Expression => {
  const anyText = without(form.closer)
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
  const { tool, index, argumentsOf, form } = held
  // Its rules are not used: this finds what is wrong with the schema, with paths from its root.
  argumentsOf(tool, `tool${index}.`)
  const keyword = notReadable(tool)
  if (tool.strict && keyword !== undefined) throw notHeld(index, keyword)
  const blocks = propertiesOf(tool, form.closer).flatMap((property, at): ReadonlyArray<Expression> => {
    const { key, required } = property
    if (!isWritable(key)) {
      if (tool.strict) throw notHeld(index, `properties.${key}`)
      return []
    }
    const { parameter, afterKey, closer, afterValue } = form
    const value = valueOf(property, at, held)
    const block = sequence(text(parameter + key + afterKey), value, text(closer + afterValue))
    return [required ? block : optional(block)]
  })
  return sequence(...blocks)
}

const replies = (form: XmlForm, use: ToolUse, argumentsOf: ArgumentsOf) => {
  const book = new RuleBook()
  const calls = callable(use).map(([index, tool]) =>
    sequence(
      text(tool.name + form.afterName),
      book.define(`tool${index}.`, argumentsOfTool({ tool, index, book, argumentsOf, form })),
    ),
  )
  const one = book.define("call", sequence(choice(calls), text(form.tail)))
  const several = use.parallel && typeof use.choice === "string"
  const rest = sequence(text(form.head), one, ...(several ? [any(sequence(text(form.next), one))] : []))
  return shapeOf(book, { openers: [form.opener], atStart: false, auto: use.choice === "auto" }, rest)
}

/** Texts without quotes where the schema says that they are texts, or where no schema is known. */
const argument = (form: XmlForm, tool: Tool | undefined, key: string, json: string) => {
  const property = tool && propertiesOf(tool, form.closer).find((known) => known.key === key)
  const plain = json.startsWith('"') && property?.text !== false
  return plain
    ? ({ kind: "text", text: JSON.parse(json) as string } as const)
    : ({ kind: "json", text: json } as const)
}

const write = (form: XmlForm, calls: ReadonlyArray<WrittenCall>, tools: ReadonlyArray<Tool>): string => {
  const written = calls.map((call) => {
    const tool = tools.find(({ name }) => name === call.name)
    const blocks = membersOf(call.arguments).map(
      ([key, json]) =>
        form.parameter +
        key +
        form.afterKey +
        argument(form, tool, key, json).text +
        form.closer +
        form.afterValue,
    )
    return call.name + form.afterName + blocks.join("") + form.tail
  })
  return form.opener + form.head + written.join(form.next)
}

/** Whether an argument is a text without quotes: also if its tool or key is unknown. */
const textKeys =
  (form: XmlForm, tools: ReadonlyArray<Tool>): TextKeys =>
  (name) => {
    const tool = tools.find((known) => known.name === name)
    const others = tool && propertiesOf(tool, form.closer).filter((property) => !property.text)
    const notTexts = new Set(others?.map(({ key }) => key))
    return (key) => !notTexts.has(key)
  }

export const xmlCalls = (form: XmlForm, markers: ReadonlyArray<string>): CallSyntax => ({
  openers: [form.opener],
  several: true,
  markers,
  write: (calls, tools) => write(form, calls, tools),
  argument: (tool, key, json) => argument(form, tool, key, json),
  replies: (use, argumentsOf) => replies(form, use, argumentsOf),
  parser: (tools, hasFormat = false) =>
    new XmlReader(form, textKeys(form, tools), hasFormat ? tools.map(({ name }) => name) : undefined),
})
