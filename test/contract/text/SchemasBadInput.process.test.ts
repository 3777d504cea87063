// JSON Schemas of tools and formats that exceed a limit or that the engine refuses: 400 with the place in the request, before
// the engine has them, and without a charge.
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fn, refusals, userSays } from "../../support/clients/TextRefusals.ts"
import { script } from "../../support/nodes/FakeNode.ts"
import { receiptsOf } from "../../support/nodes/Ledger.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilIdle, untilLoaded } from "../../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [{ ...fakeModel, options: { slots: 4 } }] })
  await untilLoaded(node, "fake")
})
afterAll(() => node.stop())

const { expectRefusal, send } = refusals(() => node)

describe("schemas", () => {
  const nested = (levels: number): string => `${'{"properties":{"a":'.repeat(levels)}{}${"}}".repeat(levels)}`
  const bodies = (schema: string): ReadonlyArray<readonly [string, string]> => {
    const head = '"model":"fake","messages":[{"role":"user","content":"hi"}]'
    return [
      [
        `{${head},"response_format":{"type":"json_schema","json_schema":{"name":"x","schema":${schema}}}}`,
        "response_format.json_schema.schema",
      ],
      [
        `{${head},"tools":[{"type":"function","function":{"name":"f","parameters":${schema}}}]}`,
        "tools[0].function.parameters",
      ],
      [`{${head},"functions":[{"name":"f","parameters":${schema}}]}`, "functions[0].parameters"],
    ]
  }

  it("of a megabyte", async () => {
    const large = JSON.stringify({ enum: Array.from({ length: 20_000 }, (_, i) => `${i}`.padEnd(47, "x")) })
    expect(large.length).toBeGreaterThan(1_000_000)
    for (const [text, field] of bodies(large)) await expectRefusal(text, field)
    for (const [text, field] of bodies(JSON.stringify({ description: "d".repeat(1_000_000) }))) {
      await expectRefusal(text, field)
    }
  })

  it("of 10,000 levels, and of 40", async () => {
    for (const [text, field] of bodies(nested(10_000))) {
      await expectRefusal(text, "body")
      const { detail } = await send(text)
      expect(detail).toContain(`is nested more than 128 levels deep, in ${field}`)
    }
    for (const [text, field] of bodies(nested(40))) {
      const { detail, status } = await send(text)
      expect([status, detail.startsWith(`${field}.properties.a`)]).toEqual([400, true])
      expect(detail).toMatch(/is nested more than 64 levels deep$/)
    }
  })

  it("with more subschemas than are read", async () => {
    const wide = JSON.stringify({ anyOf: Array.from({ length: 5_001 }, () => ({})) })
    for (const [text, field] of bodies(wide)) await expectRefusal(text, field)
  })

  it("whose bytes are too many together", async () => {
    const parameters = { description: "d".repeat(200_000) }
    await expectRefusal(
      { tools: [fn("a", { parameters }), fn("b", { parameters }), fn("c", { parameters })] },
      "tools[2].function.parameters",
    )
  })

  it("that the engine refuses name the place in the request", async () => {
    const asked = (field: string, more: object) => ({
      ...more,
      messages: [userSays(script({ refuses: { field, detail: "cannot be held" } }))],
    })
    const format = { response_format: { type: "json_schema", json_schema: { name: "x", schema: {} } } }
    const tools = { tools: [{ type: "mcp" }, fn("a"), fn("b")] }
    for (const [field, more, named] of [
      ["format.properties.age.pattern", format, "response_format.json_schema.schema.properties.age.pattern"],
      ["format", { response_format: { type: "json_object" } }, "response_format"],
      ["tools[1].properties.x", tools, "tools[2].function.parameters.properties.x"],
      ["tools[0]", { functions: [{ name: "a" }] }, "functions[0].parameters"],
      ["replies", { n: 2 }, "n"],
      ["suffix", {}, "suffix"],
    ] as const) {
      await expectRefusal(asked(field, more), named)
    }
  })
})

it("nothing was charged, and nothing is held", async () => {
  await untilIdle(node)
  expect(await receiptsOf(node, "credit")).toEqual([])
})
