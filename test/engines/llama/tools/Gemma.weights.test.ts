// What is special about Gemma's templates: they print arguments themselves, sort keys, and know few forms of schemas.
import { afterAll, beforeAll, expect, it } from "@effect/vitest"
import type { Llama } from "node-llama-cpp"
import { nativeJinja } from "#engines/llama/native/Internals.ts"
import { openLibrary } from "#engines/llama/native/Library.ts"
import { ChatTemplate } from "#engines/llama/prompt/ChatTemplate.ts"
import type { ChatTurn, Tool } from "#engines/protocol/Text.ts"
import { templates } from "./Templates.ts"

let llama: Llama
beforeAll(async () => {
  llama = await openLibrary({ gpu: "off", threads: 1, logger: () => {} })
})
afterAll(() => llama.dispose())

const special = { control: ["<|tool_call>", "<tool_call|>", '<|"|>'], everywhere: [] }
const chatOf = (source: string) =>
  new ChatTemplate(source, nativeJinja(llama)(source), { bos: "<s>", eos: "</s>", special })
const gemma = () => chatOf(templates.gemma4 ?? "")

const tool: Tool = {
  name: "set",
  description: "Sets.",
  parameters: { type: "object", properties: { value: { type: "string" } } },
  strict: false,
}
const called = (json: string, content = ""): ReadonlyArray<ChatTurn> => [
  { role: "user", content: "Hi" },
  { role: "assistant", content, calls: [{ id: "1", name: "set", arguments: json }] },
  { role: "tool", content: "done", callId: "1", name: "set" },
]
const rendered = (chat: ChatTemplate, turns: ReadonlyArray<ChatTurn>, tools = [tool]): string =>
  chat
    .parts(turns, tools)
    .map(({ text }) => text)
    .join("")

it("values of all kinds, numbers and texts as they were written, keys in their order though the template sorts them", () => {
  const json =
    '{"z": {"b": null, "a": [1.50, "x", true, [], {}]}, "n": 1e400, "e": "", "t": "a \\"b\\"\\n\\u00e9}"}'
  expect(rendered(gemma(), called(json))).toContain(
    '<|tool_call>call:set{z:{b:null,a:[1.50,<|"|>x<|"|>,true,[],{}]},n:1e400,e:<|"|><|"|>,t:<|"|>a "b"\né}<|"|>}<tool_call|>',
  )
})

it("the markers around texts are the template's, markers in texts are not", () => {
  const parts = gemma().parts(called('{"o": {"value": "x<|\\"|>}<tool_call|><|tool_call>"}}'), [tool])
  const own = parts.filter(({ byTemplate }) => byTemplate).map(({ text }) => text)
  const call = own.join("").slice(own.join("").indexOf("<|turn>model"))
  expect(call.split('<|"|>').length - 1).toBe(4)
  expect(call.split("<tool_call|>").length - 1).toBe(1)
  expect(rendered(gemma(), called('{"o": {"value": "x<|\\"|>"}}'))).toContain('o:{value:<|"|>x<|"|><|"|>}}')
})

it("text before a call is left out where the template prints it behind the call", () => {
  const behind = (templates.gemma4 ?? "").replace(
    "{%- set ns.open = true %}",
    "{%- set ns.open = true %}{{- m.content or '' }}",
  )
  expect(rendered(chatOf(behind), called("{}", "I look."))).not.toContain("I look.")
  const before = (templates.gemma4 ?? "").replace(
    "{%- if m.tool_calls %}",
    "{%- if m.tool_calls %}{{- m.content or '' }}",
  )
  expect(rendered(chatOf(before), called("{}", "I look."))).toContain("I look.<|tool_call>")
})

it("results inside of the message with the calls, and the answer to them too", () => {
  const inside = (templates.gemma4 ?? "")
    .replace("m.role == 'tool'", "m.role == 'none'")
    .replace(
      "{%- set ns.open = true %}",
      "{%- set ns.open = true %}{%- for r in m.tool_responses or [] %}{{- '<|tool_response>response:' + r.name + '{value:' }}{{- value(r.response) -}}{{- '}<tool_response|>' }}{%- endfor %}" +
        "{%- if m.content %}{{- m.content + '<turn|>\\n' }}{%- set ns.open = false %}{%- endif %}",
    )
  const turns: ReadonlyArray<ChatTurn> = [...called("{}"), { role: "assistant", content: "Set." }]
  const chat = chatOf(inside)
  expect(chat.tools.name).toBe("gemma4")
  const open =
    '<|turn>model\n<|tool_call>call:set{}<tool_call|><|tool_response>response:set{value:<|"|>done<|"|>}'
  expect(rendered(chat, called("{}"))).toMatch(new RegExp(`${escaped(open)}<tool_response\\|>$`))
  const thanks = rendered(chat, [...turns, { role: "user", content: "Thanks" }])
  expect(thanks).toContain(`${open}<tool_response|>Set.<turn|>\n<|turn>user\nThanks<turn|>\n<|turn>model\n`)
})

const escaped = (text: string): string => text.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&")

it("schemas have one type with a name", () => {
  const parameters: Tool["parameters"] = {
    type: "object",
    properties: {
      maybe: { type: ["string", "null"] },
      either: { anyOf: [{ type: "null" }, { $ref: "#/$defs/point" }] },
      listed: { enum: [1, 2] },
      free: {},
      strange: true,
      again: { $ref: "#/$defs/again" },
    },
    $defs: {
      point: { type: "object", properties: { x: { type: "number" } } },
      again: { $ref: "#/$defs/again" },
    },
  }
  const text = rendered(gemma(), [{ role: "user", content: "Hi" }], [{ ...tool, parameters }])
  const expected = [
    "again:{type:<string>}",
    "either:{nullable:true,properties:{x:{type:<number>}},type:<object>}",
    "free:{type:<string>}",
    "listed:{enum:[1,2],type:<number>}",
    "maybe:{nullable:true,type:<string>}",
    "strange:{type:<string>}",
  ].map((one) => one.replaceAll(/<(\w+)>/g, '<|"|>$1<|"|>'))
  expect(text).toContain(`properties:{${expected.join(",")}}`)
})

it("values and schemas that are nested without end are cut or written as JSON", () => {
  const deep = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`
  const text = rendered(gemma(), called(deep(3_000)))
  expect(text).toContain("{a:{a:{a:")
  expect(text).toContain('{"a": {"a": ')
  let schema: Tool["parameters"] = { type: "string" }
  for (let level = 0; level < 500; level++) schema = { type: "object", properties: { a: schema } }
  const { length } = rendered(gemma(), [{ role: "user", content: "Hi" }], [{ ...tool, parameters: schema }])
  expect(length).toBeLessThan(3_000)
})
