// The rules of replies with calls: what may be written, and from where on.
import { describe, expect, it } from "@effect/vitest"
import type { ReplyShape } from "#engines/grammar/Expression.ts"
import { schemaRules } from "#engines/grammar/schema/SchemaRules.ts"
import { ToolNotHeld } from "#engines/llama/tools/syntax/CallSyntax.ts"
import type { Tool, ToolUse } from "#engines/protocol/Text.ts"
import { clock, fewValues, syntaxes, tools, weather } from "./Calls.ts"
import { matches } from "./Matching.ts"

const syntaxOf = (wanted: string) => {
  const found = syntaxes.find(([name]) => name === wanted)
  if (found === undefined) throw new Error(wanted)
  return found[1]
}
const xmlCalls = syntaxOf("qwen-xml")

const rome = { name: "get_weather", arguments: '{"city": "Rome"}' }
const hours = { name: "clock", arguments: '{"at": [1, 2]}' }
const use = (choice: ToolUse["choice"], parallel = true): ToolUse => ({ tools, choice, parallel })

/** Whether a whole reply fits a shape with at most one stage. */
const fits = ({ stages, rules }: ReplyShape, text: string): boolean => {
  const [stage] = stages
  if (stage === undefined) return matches(rules, text)
  const found = stage.until.map((until) => [text.indexOf(until), until] as const).filter(([at]) => at >= 0)
  const first = found.toSorted(([a], [b]) => a - b)[0]
  if (first === undefined) return stage.mayEnd
  return matches(rules, text.slice(first[0] + first[1].length))
}

describe.each(syntaxes)("%s", (_name, syntax) => {
  const one = syntax.write([rome], tools)
  const two = syntax.write([rome, hours], tools)

  it("required: calls from the first byte on", () => {
    const shape = syntax.replies(use("required"), fewValues)
    expect(fits(shape, one)).toBe(true)
    expect(fits(shape, syntax.write([hours], tools))).toBe(true)
    expect(fits(shape, `Well: ${one}`)).toBe(false)
    expect(fits(shape, "Well")).toBe(false)
    expect(fits(shape, `${one} `)).toBe(false)
    expect(fits(shape, one.slice(0, -1))).toBe(false)
    expect(fits(shape, one.replace("get_weather", "get_weathers"))).toBe(false)
    expect(fits(shape, syntax.write([{ ...rome, arguments: '{"days": "Rome"}' }], tools))).toBe(false)
  })

  it("several calls only if they may be parallel", () => {
    const many = [rome, hours, rome, hours]
    const shape = syntax.replies(use("required"), fewValues)
    expect(fits(shape, two)).toBe(syntax.several)
    expect(fits(shape, syntax.write(many, tools))).toBe(syntax.several)
    expect(fits(syntax.replies(use("required", false), fewValues), one)).toBe(true)
    expect(fits(syntax.replies(use("required", false), fewValues), two)).toBe(false)
  })

  it("a named tool: exactly this one, once", () => {
    const shape = syntax.replies(use({ name: "clock" }), fewValues)
    expect(fits(shape, syntax.write([hours], tools))).toBe(true)
    expect(fits(shape, one)).toBe(false)
    expect(fits(shape, syntax.write([hours, hours], tools))).toBe(false)
  })

  it("auto: any text, and from an opener on a call", () => {
    const shape = syntax.replies(use("auto"), fewValues)
    expect(fits(shape, one)).toBe(true)
    expect(fits(shape, two)).toBe(syntax.several)
    const opener = syntax.openers[0] ?? ""
    for (const text of ["", "Hello 😀", opener.slice(0, -1), "{", `  ${opener.slice(0, 1)}`])
      expect(fits(shape, text)).toBe(true)
    expect(fits(shape, `${one}.`)).toBe(false)
    expect(fits(shape, `${opener}x`)).toBe(false)
    const anchored = shape.stages.length === 0
    expect(fits(shape, `Look: ${one}`)).toBe(true)
    expect(fits(shape, `Look: ${opener}`)).toBe(anchored)
  })
})

const tool = (properties: Tool["parameters"], more: Tool["parameters"] = {}, strict = true): Tool => ({
  name: "set",
  parameters: { type: "object", properties, ...more },
  strict,
})
const xml = (one: Tool, ...blocks: ReadonlyArray<readonly [string, string]>) => {
  const shape = xmlCalls.replies({ tools: [one], choice: "required", parallel: false }, fewValues)
  const text = blocks.map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`).join("")
  return matches(shape.rules, `<tool_call>\n<function=set>\n${text}</function>\n</tool_call>`)
}

describe("XML-like calls", () => {
  it("texts are free until their closing tag, other values are JSON", () => {
    const both = tool({ note: { type: "string" }, count: { type: "integer" } }, { required: ["note"] })
    expect(xml(both, ["note", 'any "text"\n</parameterX>\n{'], ["count", "3"])).toBe(true)
    expect(xml(both, ["note", ""])).toBe(true)
    expect(xml(both, ["count", "3"])).toBe(false)
    expect(xml(both, ["note", "a"], ["count", "three"])).toBe(false)
    expect(xml(both, ["count", "3"], ["note", "a"])).toBe(false)
    expect(xml(both, ["note", "a"], ["other", "a"])).toBe(false)
  })

  it("listed texts, constants and references", () => {
    const listed = tool(
      {
        unit: { enum: ["C", "F"] },
        kind: { const: "k" },
        name: { $ref: "#/$defs/name" },
        mixed: { type: ["string", "null"] },
      },
      { $defs: { name: { type: "string" } } },
    )
    expect(xml(listed, ["unit", "C"], ["kind", "k"], ["name", "free"], ["mixed", '"x"'])).toBe(true)
    expect(xml(listed, ["mixed", "null"])).toBe(true)
    expect(xml(listed, ["unit", "K"])).toBe(false)
    expect(xml(listed, ["mixed", "x"])).toBe(false)
  })

  it("what cannot be held is refused if it is strict, and left open if not", () => {
    const problem = (one: Tool) => {
      try {
        xml(one)
        return undefined
      } catch (error) {
        return error instanceof ToolNotHeld ? [error.tool, error.path] : error
      }
    }
    const pattern = { code: { type: "string", pattern: "^[A-Z]+$" } }
    // The stand-in for the rules of values gives none for texts with a pattern.
    expect(problem(tool(pattern))).toEqual([0, "properties.code.pattern"])
    expect(xml(tool(pattern, {}, false), ["code", "any"])).toBe(true)
    expect(problem(tool({}, { anyOf: [] }))).toEqual([0, "anyOf"])
    expect(problem(tool({}, { anyOf: [] }, false))).toBeUndefined()
    expect(problem(tool({ "a>": { type: "string" } }))).toEqual([0, "properties.a>"])
  })
})

it("XML-like calls hold texts to the rules of their schema", () => {
  const code = tool({
    code: { type: "string", pattern: "^[A-Z]+$" },
    short: { type: "string", maxLength: 2 },
  })
  const shape = xmlCalls.replies(
    { tools: [code], choice: "required", parallel: false },
    ({ parameters }, prefix) => {
      const found = schemaRules(parameters, { strict: true, notation: "spaced", prefix })
      if ("problem" in found) throw new Error(found.problem.detail)
      return found.rules
    },
  )
  const fits = (...blocks: ReadonlyArray<readonly [string, string]>) =>
    matches(
      shape.rules,
      `<tool_call>\n<function=set>\n${blocks.map(([key, value]) => `<parameter=${key}>\n${value}\n</parameter>\n`).join("")}</function>\n</tool_call>`,
    )
  expect(fits(["code", "ABC"], ["short", "😀\n"])).toBe(true)
  expect(fits(["code", "abc"])).toBe(false)
  expect(fits(["short", "abc"])).toBe(false)
})

it("the rules of several tools have names of their own", () => {
  for (const [, syntax] of syntaxes) {
    const { rules } = syntax.replies({ tools: [weather, clock], choice: "auto", parallel: true }, fewValues)
    expect(rules.rules.size).toBeGreaterThan(0)
  }
})
