// Call syntax around arguments in one piece: Hermes, Qwen, Llama, Mistral, DeepSeek, Kimi, Gemma and the general form.

import type { Expression } from "../../../grammar/Expression.ts"
import type { ToolUse } from "../../../protocol/Text.ts"
import { CallReader, type CallSteps } from "../readers/CallReader.ts"
import { JsonReader } from "../readers/JsonEnd.ts"
import { MarkedReader } from "../readers/MarkedReader.ts"
import type { ArgumentsOf, CallSyntax, WrittenCall } from "./CallSyntax.ts"
import { any, callable, choice, optional, RuleBook, sequence, shapeOf, text } from "./Expressions.ts"
import { respaced } from "./JsonText.ts"
import { markedText } from "./MarkedText.ts"

/**
 * A reply with calls: an opener, `head`, a name, `middle`, arguments, `tail`; for each further call `next`, a name and so on;
 * then `close`.
 */
interface JsonForm {
  readonly openers: ReadonlyArray<string>
  /** A call may only be the first thing in a reply. */
  readonly atStart?: boolean
  readonly head: string
  /** Between a name and the number of the call, for families that count calls. */
  readonly beforeNumber?: string
  readonly middle: string | ((call: number) => string)
  readonly tail: string | ((call: number) => string)
  /** Absent: at most one call. */
  readonly next?: string
  readonly close: string
  readonly markers?: ReadonlyArray<string>
  readonly idOf?: (call: number, name: string) => string
  /** Arguments are not JSON: this begins and ends a text in them. */
  readonly marker?: string
  readonly ends?: CallSyntax["ends"]
  readonly result?: CallSyntax["result"]
  readonly parameters?: CallSyntax["parameters"]
}

/** Calls of one reply in families that number their calls: each has rules of its own. A guess: more than agents need. */
const mostNumbered = 16

/** Digits of the number of a call. A guess: more than conversations have calls. */
const mostDigits = 4

const resolved = (part: string | ((call: number) => string), call: number): string =>
  typeof part === "string" ? part : part(call)

/** Any number: some templates count the calls of a message, others those of the conversation. */
const numberOfCall = ({ beforeNumber }: JsonForm): Expression =>
  beforeNumber === undefined
    ? text("")
    : sequence(text(beforeNumber), {
        kind: "repeat",
        of: { kind: "characters", ranges: [[0x30, 0x39]] },
        least: 1,
        most: mostDigits,
      })

const replies = (form: JsonForm, use: ToolUse, argumentsOf: ArgumentsOf) => {
  const book = new RuleBook()
  const { middle, tail, next } = form
  const tools = callable(use).map(([index, tool]) => {
    const prefix = `tool${index}.`
    return {
      name: tool.name,
      arguments: book.define(prefix, book.include(argumentsOf(tool, prefix, form.marker))),
    }
  })
  const call = (number: number): Expression =>
    sequence(
      choice(
        tools.map((tool) =>
          sequence(text(tool.name), numberOfCall(form), text(resolved(middle, number)), tool.arguments),
        ),
      ),
      text(resolved(tail, number)),
    )
  const several = next !== undefined && use.parallel && typeof use.choice === "string"
  const numbered = typeof middle !== "string" || typeof tail !== "string"
  const further = (number: number): ReadonlyArray<Expression> =>
    number < mostNumbered ? [optional(sequence(text(next ?? ""), call(number), ...further(number + 1)))] : []
  const all = (): ReadonlyArray<Expression> => {
    if (!several) return [call(0)]
    if (numbered) return [call(0), ...further(1)]
    const one = book.define("call", call(0))
    return [one, any(sequence(text(next), one))]
  }
  const rest = sequence(text(form.head), ...all(), text(form.close))
  const { openers, atStart = false } = form
  return shapeOf(book, { openers, atStart, auto: use.choice === "auto" }, rest)
}

const argumentsText = ({ marker }: JsonForm, json: string): string =>
  marker === undefined ? respaced(json) : markedText(json, marker)

const write = (form: JsonForm, calls: ReadonlyArray<WrittenCall>): string => {
  const written = calls.map(
    (call, at) =>
      call.name +
      (form.beforeNumber === undefined ? "" : `${form.beforeNumber}${at}`) +
      resolved(form.middle, at) +
      argumentsText(form, call.arguments) +
      resolved(form.tail, at),
  )
  return (form.openers[0] ?? "") + form.head + written.join(form.next ?? "") + form.close
}

const steps = (form: JsonForm): CallSteps => ({
  openers: form.openers,
  atStart: form.atStart === true,
  head: form.head,
  // A name has none of the characters that `middle` begins with.
  beforeNumber: form.beforeNumber,
  afterName: (call) => resolved(form.middle, call),
  afterArguments: (call) => resolved(form.tail, call),
  next: form.next,
  argumentsReader: () => (form.marker === undefined ? new JsonReader() : new MarkedReader(form.marker)),
})

export const jsonCalls = (form: JsonForm): CallSyntax => ({
  openers: form.openers,
  several: form.next !== undefined,
  markers: form.markers ?? [],
  write: (calls) => write(form, calls),
  argument: (_tool, _key, json) => ({ kind: "json", text: json }),
  replies: (use, argumentsOf) => replies(form, use, argumentsOf),
  parser: (tools, hasFormat = false) =>
    new CallReader(steps(form), hasFormat ? tools.map(({ name }) => name) : undefined),
  ...(form.idOf === undefined ? {} : { idOf: form.idOf }),
  ...(form.marker === undefined ? {} : { marker: form.marker }),
  ...(form.ends === undefined ? {} : { ends: form.ends }),
  ...(form.result === undefined ? {} : { result: form.result }),
  ...(form.parameters === undefined ? {} : { parameters: form.parameters }),
})
