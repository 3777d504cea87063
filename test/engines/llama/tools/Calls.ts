// Calls, tools and the syntax of all families, for the tests of this folder.
import fc from "fast-check"
import type { Json } from "#domain/wire/Json.ts"
import type { Expression, Rules } from "#engines/grammar/Expression.ts"
import { knownFamilies } from "#engines/llama/tools/FamilyTable.ts"
import { generalCalls } from "#engines/llama/tools/GeneralForm.ts"
import type { CallParser, ParsedPiece } from "#engines/llama/tools/readers/CallParser.ts"
import type { ArgumentsOf, CallSyntax, WrittenCall } from "#engines/llama/tools/syntax/CallSyntax.ts"
import { respaced } from "#engines/llama/tools/syntax/JsonText.ts"
import { markedText } from "#engines/llama/tools/syntax/MarkedText.ts"
import type { Tool } from "#engines/protocol/Text.ts"

export const syntaxes: ReadonlyArray<readonly [name: string, syntax: CallSyntax]> = [
  ...knownFamilies.map(({ name, syntax }): readonly [string, CallSyntax] => [name, syntax]),
  ["general", generalCalls],
]

export const weather: Tool = {
  name: "get_weather",
  description: "Weather of a city.",
  parameters: {
    type: "object",
    properties: { city: { type: "string" }, days: { type: "integer" }, unit: { enum: ["C", "F"] } },
    required: ["city"],
    additionalProperties: false,
  },
  strict: true,
}

export const clock: Tool = {
  name: "clock",
  parameters: { type: "object", properties: { at: { type: "array" } } },
  strict: false,
}

export const tools = [weather, clock]

const text = (value: string): Expression => ({ kind: "text", text: value })

/** Stand-in for the rules of JSON values: a few values that the tests use. */
export const fewValues: ArgumentsOf = (tool, prefix, marker): Rules => {
  const { type, properties } = tool.parameters
  const json = (value: string) => text(marker === undefined ? value : markedText(value, marker))
  if (properties !== undefined)
    return {
      root: { kind: "rule", name: `${prefix}object` },
      rules: new Map([
        [
          `${prefix}object`,
          {
            kind: "choice",
            of: tool.name === "clock" ? [json("{}"), json('{"at": [1, 2]}')] : [json('{"city": "Rome"}')],
          },
        ],
      ]),
    }
  if (type === "integer") return { root: { kind: "characters", ranges: [[48, 57]] }, rules: new Map() }
  return { root: { kind: "choice", of: [text("[1, 2]"), text('"x"'), text("null")] }, rules: new Map() }
}

interface Reply {
  readonly content: string
  readonly calls: ReadonlyArray<WrittenCall>
}

/** Adds up the pieces of a reply, checking their order. */
export const assembled = (pieces: ReadonlyArray<ParsedPiece>): Reply => {
  let content = ""
  const calls: Array<{ name: string; arguments: string }> = []
  for (const { text, part } of pieces) {
    if (part === undefined) {
      if (calls.length > 0) throw new Error("text of the answer after a call")
      if (text === "") throw new Error("an empty piece")
      content += text
    } else if (part.kind === "call") {
      if (part.call !== calls.length || text !== "") throw new Error("calls are out of order")
      calls.push({ name: part.name, arguments: "" })
    } else if (part.kind === "arguments") {
      const call = calls[part.call]
      if (call === undefined || part.call !== calls.length - 1 || text === "")
        throw new Error("arguments without a call")
      call.arguments += text
    } else throw new Error("reasoning is not read here")
  }
  return { content, calls }
}

/** The text in pieces that are cut at these fractions of its length, never inside a character. */
export const inPieces = (text: string, cuts: ReadonlyArray<number>): ReadonlyArray<string> => {
  const characters = [...text]
  const at = [
    0,
    ...cuts.map((cut) => Math.floor(cut * characters.length)).toSorted((a, b) => a - b),
    characters.length,
  ]
  return at.slice(1).map((to, index) => characters.slice(at[index], to).join(""))
}

export const read = (parser: CallParser, pieces: ReadonlyArray<string>, cut?: boolean): Reply =>
  assembled([...pieces.flatMap((piece) => parser.push(piece)), ...parser.end(cut)])

const word = fc.oneof(
  fc.string({ unit: "grapheme", maxLength: 12 }),
  fc.constantFrom(
    "\\",
    '"',
    "}",
    "{",
    "\n",
    "</tool_call>",
    "\n</paramete",
    "\n</function>",
    "]",
    "```",
    "[ARGS]",
    "<|",
    '<|"|',
    "<escape",
    "</arg_value",
    "😀",
    "ü",
  ),
)
const someText = fc.array(word, { maxLength: 5 }).map((words) => words.join(""))

/** Values whose keys can be written without quotes. */
const { plainValue } = fc.letrec<{ plainValue: Json }>((tie) => ({
  plainValue: fc.oneof(
    { maxDepth: 3 },
    someText,
    fc.double({ noNaN: true, noDefaultInfinity: true }),
    fc.constantFrom(null, true, false),
    fc.array(tie("plainValue"), { maxLength: 3 }),
    fc.dictionary(fc.stringMatching(/^[A-Za-zü][\w $-]{0,6}$/), tie("plainValue"), {
      maxKeys: 3,
      noNullPrototype: true,
    }),
  ),
}))

/** Arguments as JSON text with spaces as the templates print them. */
const argumentsJson = ({ marker }: CallSyntax) =>
  fc
    .record(
      {
        city: someText,
        days: fc.integer(),
        unit: fc.constantFrom("C", "F"),
        at: fc.array<unknown>(marker === undefined ? fc.jsonValue({ maxDepth: 2 }) : plainValue, {
          maxLength: 3,
        }),
      },
      { requiredKeys: [] },
    )
    .map(({ city, days, unit, at }) => {
      const json = JSON.stringify(at === undefined ? { city, days, unit } : { at })
      return respaced(json)
    })

export const someCalls = (syntax: CallSyntax) =>
  fc.array(
    argumentsJson(syntax).map(
      (json): WrittenCall => ({ name: json.startsWith('{"at"') ? "clock" : "get_weather", arguments: json }),
    ),
    { minLength: 1, maxLength: 3 },
  )

export const cuts = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 12 })

/** Answer text with beginnings of openers inside, but no opener, and no white space at its end. */
export const contentFor = ({ openers }: CallSyntax) =>
  fc
    .array(
      fc.oneof(
        fc.string({ unit: "grapheme", maxLength: 10 }),
        fc.constantFrom(" ", "\n\n", "<", "[", "{"),
        fc
          .tuple(fc.constantFrom(...openers), fc.nat())
          .map(([opener, length]) => opener.slice(0, length % opener.length)),
      ),
      { maxLength: 6 },
    )
    .map((parts) => parts.join("").trimEnd())
    .filter((content) => !openers.some((opener) => content.includes(opener)))
