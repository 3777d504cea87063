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

describe("a schema that is too costly to hold a reply to", () => {
  const detail = "response_format.json_schema.schema: takes too long"
  const costly = (more: object) => ({
    model: "fake",
    messages: [userSays(script({ refuses: { field: "format", detail: "takes too long" }, failAt: 3 }))],
    response_format: { type: "json_schema", json_schema: { name: "x", schema: {} } },
    ...more,
  })

  it("is 400 with its place, and the generated tokens are charged", async () => {
    expect(await send(costly({}))).toEqual({ status: 400, detail })
    await untilIdle(node)
    expect(await receiptsOf(node, "credit")).toHaveLength(1)
  })

  it("ends a stream with an error event, and without its regular end", async () => {
    const response = await node.post("/v1/chat/completions", costly({ stream: true }))
    expect(response.status).toBe(200)
    let events = ""
    const read = async () => {
      for await (const chunk of response.body ?? []) events += Buffer.from(chunk).toString()
    }
    await expect(read()).rejects.toThrow("terminated")
    expect(events).toContain("token")
    expect(events).toContain(JSON.stringify({ error: { message: detail, type: "invalid_request_error" } }))
    expect(events).not.toContain("[DONE]")
  })

  it("fails a response with the name of its own field", async () => {
    const { messages } = costly({})
    const format = { type: "json_schema", name: "x", schema: {} }
    const response = await node.post("/v1/responses", {
      model: "fake",
      input: messages[0]?.content,
      text: { format },
    })
    expect(response.status).toBe(400)
    expect(await response.json()).toMatchObject({ detail: "text.format.schema: takes too long" })
  })
})
