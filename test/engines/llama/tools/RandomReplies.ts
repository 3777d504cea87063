// Replies drawn at random from the rules of every family, as an untrained model would write them, and read as they stream.
import { Ajv2020 } from "ajv/dist/2020.js"
import fc from "fast-check"
import { compile } from "#engines/grammar/compile/Compile.ts"
import type { Notation } from "#engines/grammar/schema/JsonText.ts"
import { schemaRules } from "#engines/grammar/schema/SchemaRules.ts"
import { Matcher } from "#engines/grammar/test/Matcher.ts"
import type { ArgumentsOf, CallSyntax } from "#engines/llama/tools/syntax/CallSyntax.ts"
import type { Tool, ToolUse } from "#engines/protocol/Text.ts"
import { cuts, inPieces, read, syntaxes } from "./Calls.ts"

const randomTools: ReadonlyArray<Tool> = [
  {
    name: "get_weather",
    parameters: {
      type: "object",
      properties: {
        city: { type: "string", minLength: 1, maxLength: 20 },
        unit: { enum: ["C", "F"] },
        days: { type: "integer", minimum: 1, maximum: 14 },
        note: { type: ["string", "null"] },
      },
      required: ["city", "note"],
      additionalProperties: false,
    },
    strict: true,
  },
  {
    name: "write",
    parameters: {
      type: "object",
      properties: {
        text: { type: "string" },
        code: { type: "string", pattern: "^[a-z]{2}-[0-9]+$" },
        tree: { $ref: "#/$defs/tree" },
        tags: { type: "array", items: { type: "string" }, maxItems: 3 },
      },
      required: ["text"],
      additionalProperties: false,
      $defs: {
        tree: {
          type: "object",
          properties: { value: { type: "number" }, next: { $ref: "#/$defs/tree" } },
          required: ["value"],
          additionalProperties: false,
        },
      },
    },
    strict: true,
  },
  { name: "now", parameters: { type: "object", properties: {}, additionalProperties: false }, strict: true },
]

const rulesOfArguments: ArgumentsOf = (tool, prefix, marker) => {
  const notation: Notation = marker === undefined ? "spaced" : { marker }
  const found = schemaRules(tool.parameters, { strict: tool.strict, notation, prefix })
  if ("problem" in found) throw new Error(`${found.problem.path}: ${found.problem.detail}`)
  return found.rules
}

const grammarOf = (syntax: CallSyntax, use: ToolUse) => {
  const made = compile(syntax.replies(use, rulesOfArguments))
  if ("problem" in made) throw new Error(made.problem)
  return made.grammar
}

const ajv = new Ajv2020({ strict: false })
const validators = new Map(randomTools.map((tool) => [tool.name, ajv.compile(tool.parameters)]))

const utf8 = new TextEncoder()
const pool = [...'\n\n</parameter>""\\{}[]:, aeiouwgn0123456789-.ürøC東😀\t_tfln'].map((character) =>
  utf8.encode(character),
)

/** A reply of at most about this many characters of free choice, then the shortest end. */
const drawn = (matcher: Matcher, random: () => number, most: number): string => {
  const bytes: Array<number> = []
  const take = (next: Uint8Array): boolean => {
    if (!matcher.accept(next)) return false
    bytes.push(...next)
    return true
  }
  for (let count = 0; count < most && !matcher.finished; count++) {
    const forced = matcher.forced()
    if (forced.length > 0) {
      take(forced)
      continue
    }
    if (matcher.complete && random() < 0.1) break
    const offset = Math.floor(random() * pool.length)
    const found = pool.some((_, at) => take(pool[(at + offset) % pool.length] ?? new Uint8Array(0)))
    if (!found) break
  }
  if (!matcher.complete) take(matcher.shortest())
  return new TextDecoder("utf-8", { fatal: true }).decode(Uint8Array.from(bytes))
}

/** The reply with its calls numbered from 0, as it is written again: Kimi's grammar takes any number. */
const numbered = (text: string): string => {
  let call = 0
  return text.replaceAll(
    /(<\|tool_call_begin\|>functions\.\w+):\d+(?=<\|tool_call_argument_begin\|>)/g,
    (_, name: string) => `${name}:${call++}`,
  )
}

const uses: ReadonlyArray<ToolUse> = [
  { tools: randomTools, choice: "required", parallel: true },
  { tools: randomTools, choice: "required", parallel: false },
  ...randomTools.map(({ name }): ToolUse => ({ tools: randomTools, choice: { name }, parallel: true })),
]

/** Draws replies with calls and reads them in random pieces; throws at the first that is wrong. Gives the number of calls. */
export const checkRandomReplies = (repliesOfEach: number): number => {
  let calls = 0
  for (const [name, syntax] of syntaxes)
    for (const use of uses) {
      const grammar = grammarOf(syntax, use)
      const reply = fc.tuple(
        fc.infiniteStream(fc.double({ min: 0, max: 0.999, noNaN: true })),
        fc.nat(300),
        cuts,
      )
      const property = fc.property(reply, ([stream, most, at]) => {
        const text = drawn(new Matcher(grammar), () => stream.next().value, most)
        const { content, calls: found } = read(syntax.parser(randomTools), inPieces(text, at))
        const fail = (what: string) => {
          throw new Error(`${name}: ${what}: ${JSON.stringify(text)}`)
        }
        if (content !== "") fail("text of the answer")
        if (found.length === 0) fail("no call")
        if (found.length > 1 && (!use.parallel || typeof use.choice !== "string")) fail("too many calls")
        for (const call of found) {
          const valid = validators.get(call.name)
          if (valid === undefined || !valid(JSON.parse(call.arguments))) fail(`arguments ${call.arguments}`)
        }
        if (syntax.write(found, randomTools) !== numbered(text)) fail("written otherwise")
        calls += found.length
      })
      fc.assert(property, { numRuns: repliesOfEach })
    }
  return calls
}
