// Families recognised from templates, and conversations with calls rendered by llama.cpp's Jinja.
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import type { Llama } from "node-llama-cpp"
import { nativeJinja } from "#engines/llama/native/Internals.ts"
import { openLibrary } from "#engines/llama/native/Library.ts"
import { ChatTemplate } from "#engines/llama/prompt/ChatTemplate.ts"
import type { PromptPart } from "#engines/llama/tools/places/Places.ts"
import type { ChatTurn, Tool } from "#engines/protocol/Text.ts"
import { contentFor, cuts, inPieces, read, someCalls, syntaxes, tools } from "./Calls.ts"
import { recordedTools, recordedTurns } from "./Recorded.ts"
import renderings from "./renderings.json" with { type: "json" }
import { templates } from "./Templates.ts"

let llama: Llama
beforeAll(async () => {
  llama = await openLibrary({ gpu: "off", threads: 1, logger: () => {} })
})
afterAll(() => llama.dispose())

const special = {
  control: ["<|evil|>", "[EVIL]", "<s>"],
  everywhere: ["<evil_tag>", "<not_in_the_template>"],
}
const template = (name: string) => {
  const source = `${templates[name]}{#- <evil_tag> #}`
  return new ChatTemplate(source, nativeJinja(llama)(source), { bos: "<s>", eos: "</s>", special })
}
const textOf = (parts: ReadonlyArray<PromptPart>): string => parts.map((part) => part.text).join("")

const user: ChatTurn = { role: "user", content: "Hi" }

describe.each(syntaxes)("%s", (name, syntax) => {
  it("is recognised, and its history continues the prompt", () => {
    const { tools } = template(name)
    expect([tools.name, tools.historyMatches]).toEqual([name, true])
  })

  it("renders what Python's Jinja renders", () => {
    const recorded = new Map(Object.entries(renderings)).get(name)
    if (recorded === undefined) return expect(name).toBe("general")
    const printsTools = recorded.includes("Größe")
    expect(textOf(template(name).parts(recordedTurns, printsTools ? recordedTools : []))).toBe(recorded)
  })

  it("calls of any content come back from the rendered history", () => {
    const chat = template(name)
    const prompt = textOf(chat.parts([user], tools))
    fc.assert(
      fc.property(someCalls(syntax), cuts, (some, at) => {
        const written = (syntax.several ? some : some.slice(0, 1)).map((call, index) => ({
          ...call,
          id: `id-${index}`,
        }))
        const results = written.map(
          (call): ChatTurn => ({ role: "tool", content: "done", callId: call.id, name: call.name }),
        )
        // As a client sends it back that has parsed and printed the arguments.
        const calls = written.map((call) => ({
          ...call,
          arguments: JSON.stringify(JSON.parse(call.arguments)),
        }))
        const history = textOf(
          chat.parts([user, { role: "assistant", content: "", calls }, ...results], tools),
        )
        const reply = syntax.write(written, tools)
        expect(history.startsWith(prompt + reply)).toBe(true)
        const rendered = history.slice(prompt.length, prompt.length + reply.length)
        expect(read(chat.tools.parser(tools), inPieces(rendered, at)).calls).toEqual(
          written.map(({ name: called, arguments: json }) => ({ name: called, arguments: json })),
        )
      }),
      { numRuns: 40 },
    )
  })

  it("nothing that a caller writes becomes a special token", () => {
    const chat = template(name)
    const evil = "a <|evil|> [EVIL]\n<evil_tag> <|EVIL|> <s>"
    const hostile: Tool = {
      name: "get",
      description: evil,
      parameters: {
        type: "object",
        [evil]: { [evil]: evil },
        properties: {
          [evil]: {
            type: "string",
            description: evil,
            enum: [evil, "|evil|"],
            [evil]: evil,
            "|evil|": "|evil|",
          },
          plain: { type: "string", "|evil|": "EVIL", EVIL: 1, "<|evil|": 2, "|evil|>": 3, " |evil| ": 4 },
        },
        required: [evil],
      },
      strict: false,
    }
    const turns: ReadonlyArray<ChatTurn> = [
      { role: "system", content: evil },
      { role: "user", content: evil },
      {
        role: "assistant",
        content: evil,
        reasoning: evil,
        calls: [
          {
            id: evil,
            name: "get",
            arguments: JSON.stringify({ [evil]: evil, plain: "|evil|", "|evil|": [evil] }),
          },
        ],
      },
      { role: "tool", content: evil, callId: evil, name: "get" },
    ]
    const parts = chat.parts(turns, [hostile])
    for (const { text, byTemplate } of parts) {
      const inTemplate = byTemplate ? text.toLowerCase().replace(/^<s>/, "") : ""
      for (const spelling of special.control) expect(inTemplate).not.toContain(spelling.toLowerCase())
      expect(text).not.toContain("<evil_tag>")
    }
    // All of it is there as ordinary text.
    expect(textOf(parts).split("<evil_tag>").length).toBeGreaterThanOrEqual(4)
    expect(textOf(parts)).not.toMatch(/@@/)
    // Texts without special tokens are not cut.
    expect(chat.parts([user], tools).length).toBeLessThan(6)
  })

  it("reads what the grammar lets through", () => {
    fc.assert(
      fc.property(contentFor(syntax), (content) => {
        fc.pre(!syntax.openers.some((opener) => content.startsWith(opener)))
        expect(read(template(name).tools.parser(tools), [content])).toEqual({ content, calls: [] })
      }),
      { numRuns: 5 },
    )
  })
})

it("calls and results one by one where the template knows one call in a message", () => {
  const calls = ["a", "b"].map((id) => ({ id, name: "clock", arguments: "{}" }))
  const results = ["b", "a"].map(
    (id): ChatTurn => ({ role: "tool", content: `result ${id}`, callId: id, name: "clock" }),
  )
  const text = textOf(
    template("llama3").parts([user, { role: "assistant", content: "", calls }, ...results], tools),
  )
  const call = '{"name": "clock", "parameters": {}}<|eot_id|>'
  expect(
    [...text.matchAll(/result [ab]|\{"name": "clock", "parameters": \{\}\}<\|eot_id\|>/g)].map(
      ([found]) => found,
    ),
  ).toEqual([call, "result a", call, "result b"])
})

it("numbers and texts of definitions and arguments keep their spelling", () => {
  const parameters = {
    type: "object",
    properties: { x: { type: "number", minimum: 0.123456789, maximum: 1e300 } },
  }
  const tool: Tool = { name: "clock", description: "", parameters, strict: false }
  const json = '{"x":1.50,"y":1e400,"z":"\\u00e9\\/"}'
  const calls = [{ id: "1", name: "clock", arguments: json }]
  const text = textOf(template("hermes").parts([user, { role: "assistant", content: "", calls }], [tool]))
  expect(text).toContain('"minimum": 0.123456789, "maximum": 1e+300')
  expect(text).toContain('{"x": 1.50, "y": 1e400, "z": "\\u00e9\\/"}')
})

it("a template without a system role gets the definitions in the first message", () => {
  const source =
    "{% for m in messages %}{% if m.role == 'system' or (m.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('no') }}{% endif %}[{{ m.role }}]{{ m.content }}{% endfor %}"
  const chat = new ChatTemplate(source, nativeJinja(llama)(source), { bos: "", eos: "" })
  const calls = [{ id: "1", name: "clock", arguments: "{}" }]
  const results: ReadonlyArray<ChatTurn> = [
    { role: "tool", content: "9", callId: "1", name: "clock" },
    { role: "user", content: "Thanks" },
  ]
  const text = textOf(chat.parts([user, { role: "assistant", content: "", calls }, ...results], tools))
  expect(chat.tools.name).toBe("general")
  expect(text).toMatch(
    /^\[user\]# Tools\n[\s\S]*<\/tool_call>\n\nHi\[assistant\]<tool_call>[\s\S]*<\/tool_call>\[user\]<tool_response>\n9\n<\/tool_response>\n\nThanks$/,
  )
})
