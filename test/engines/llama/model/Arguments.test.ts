import fc from "fast-check"
import { describe, expect, it } from "vitest"
import type { JsonObject } from "#domain/wire/Json.ts"
import { withObjectArguments } from "#engines/llama/model/Arguments.ts"
import { replyShape } from "#engines/llama/model/Shapes.ts"
import { knownFamilies } from "#engines/llama/tools/FamilyTable.ts"
import { randomNumbers, Sentences } from "../../../../engines/grammar/test/schema/Sentences.ts"

const toolWith = (parameters: JsonObject) => ({ name: "f", strict: false, parameters })
const held = (parameters: JsonObject) => withObjectArguments(toolWith(parameters), 0).parameters

describe("the arguments of a call", () => {
  const a = { type: "object", properties: { a: { type: "boolean" } }, required: ["a"] }
  it.each<readonly [string, JsonObject]>([
    ["nothing", {}],
    ["no type", { properties: a.properties, required: a.required }],
    ["an object or null", { ...a, type: ["null", "object"] }],
    ["alternatives of which one is a text", { anyOf: [{ type: "string" }, a] }],
    ["an object that OpenAPI calls nullable", { ...a, nullable: true }],
    ["no type, but nullable", { nullable: true }],
    ["a reference to what is nullable", { $ref: "#/$defs/c", $defs: { c: { ...a, nullable: true } } }],
    ["a reference", { $ref: "#/$defs/a", $defs: { a } }],
    [
      "a reference to what may be a number",
      { $ref: "#/$defs/b", $defs: { b: { anyOf: [{ type: "number" }, a] } } },
    ],
    ["values of which one is a list", { enum: [[1], { a: true }] }],
    ["a keyword that cannot be held", { not: {} }],
  ])("are an object if the schema says %s", (_, parameters) => {
    const use = { tools: [toolWith(parameters)], choice: "required", parallel: false } as const
    const { shape } = replyShape({ family: "hermes", tools: use })
    const writer = new Sentences(shape.rules)
    const next = randomNumbers(7)
    const parser = knownFamilies.find(({ name }) => name === "hermes")!.syntax
    for (let i = 0; i < 50; i++) {
      const reader = parser.parser(use.tools)
      const pieces = [...reader.push(writer.random(next, i % 2 === 0 ? 40 : 120)), ...reader.end()]
      const text = pieces.flatMap(({ part, text }) => (part?.kind === "arguments" ? [text] : [])).join("")
      const value: unknown = JSON.parse(text)
      expect(Array.isArray(value) || value === null).toBe(false)
      expect(value).toBeTypeOf("object")
    }
  })

  it("are none if the schema lists no properties", () => {
    for (const parameters of [
      { type: "object", properties: {} },
      { type: "object", properties: {}, required: [], description: "Nothing." },
    ]) {
      expect(held(parameters)).toEqual({ ...parameters, additionalProperties: false })
    }
    for (const parameters of [
      { type: "object" },
      { type: "object", properties: {}, additionalProperties: { type: "string" } },
      { type: "object", properties: {}, patternProperties: { "^x": {} } },
    ]) {
      expect(held(parameters)).toEqual(parameters)
    }
  })

  it("cannot be of another type", () => {
    for (const type of ["string", "array", ["string", "null"]]) {
      expect(() => held({ type })).toThrow(
        expect.objectContaining({
          field: "tools[0].type",
          message: expect.stringContaining("must be object"),
        }),
      )
    }
  })

  it("have a schema of type object, whatever the type was, if it is not refused", () => {
    const types = fc.constantFrom("null", "boolean", "integer", "number", "string", "array", "object")
    fc.assert(
      fc.property(fc.oneof(types, fc.uniqueArray(types, { minLength: 1 })), (type) => {
        const refused = ![type].flat().includes("object")
        if (refused) expect(() => held({ type })).toThrow()
        else expect(held({ type })).toEqual({ type: "object" })
      }),
    )
  })
})
