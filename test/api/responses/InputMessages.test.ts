// Items of the Responses API as messages of a chat: a conversation that goes back item by item is the conversation that a
// chat would have had.
import { expect, it } from "vitest"
import { inputMessages } from "#api/responses/InputMessages.ts"
import type { InputItem } from "#domain/wire/responses/Request.ts"
import { turnsOf } from "#services/chat/ChatTurns.ts"

const read = (input: string | ReadonlyArray<InputItem>, instructions?: string) => {
  const read = inputMessages({ input, ...(instructions === undefined ? {} : { instructions }) })
  if (!("messages" in read)) throw new Error(`${read.field}: ${read.problem}`)
  const turns = turnsOf(read.messages, { model: "m", pictures: false })
  return "turns" in turns ? turns.turns : turns
}
const call = (call_id: string, name = "f") => ({ type: "function_call", call_id, name, arguments: "{}" })
const result = (call_id: string, output: string) => ({ type: "function_call_output", call_id, output })
const said = (text: string) => ({
  type: "message",
  role: "assistant" as const,
  content: [{ type: "output_text", text }],
})
const user = (text: string) => ({ role: "user" as const, content: [{ type: "input_text", text }] })

it("a text is the user's message, instructions stand in front", () => {
  expect(read("Hello", "Be brief.")).toEqual([
    { role: "system", content: "Be brief." },
    { role: "user", content: "Hello" },
  ])
})

it("thoughts, text and calls of one reply are one message", () => {
  const thoughts = { type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Hm." }] }
  const items = [
    user("Do."),
    thoughts,
    said("I do."),
    call("1"),
    call("2", "g"),
    result("1", "a"),
    result("2", "b"),
  ]
  expect(read([...items, said("Done.")])).toEqual([
    { role: "user", content: "Do." },
    {
      role: "assistant",
      content: "I do.",
      reasoning: "Hm.",
      calls: [
        { id: "1", name: "f", arguments: "{}" },
        { id: "2", name: "g", arguments: "{}" },
      ],
    },
    { role: "tool", content: "a", callId: "1", name: "f" },
    { role: "tool", content: "b", callId: "2", name: "g" },
    { role: "assistant", content: "Done." },
  ])
})

it("calls without text, each with its result, are messages of their own", () => {
  expect(read([user("Do."), call("1"), result("1", "a"), call("2"), result("2", "b")])).toMatchObject([
    { role: "user" },
    { role: "assistant", content: "", calls: [{ id: "1" }] },
    { role: "tool", callId: "1" },
    { role: "assistant", content: "", calls: [{ id: "2" }] },
    { role: "tool", callId: "2" },
  ])
})

it("thoughts in a summary count, and thoughts before no reply are dropped", () => {
  const thoughts = (text: string) => ({ type: "reasoning", summary: [{ type: "summary_text", text }] })
  expect(read([user("a"), thoughts("one"), call("1"), result("1", "r"), thoughts("two"), user("b")])).toEqual(
    [
      { role: "user", content: "a" },
      { role: "assistant", content: "", reasoning: "one", calls: [{ id: "1", name: "f", arguments: "{}" }] },
      { role: "tool", content: "r", callId: "1", name: "f" },
      { role: "user", content: "b" },
    ],
  )
})

it("parts are joined, a refusal is text, developer is system", () => {
  const parts = [
    { type: "output_text", text: "a" },
    { type: "refusal", refusal: "b" },
  ]
  expect(
    read([
      { role: "developer", content: "d" },
      { type: "message", role: "assistant", content: parts },
    ]),
  ).toEqual([
    { role: "system", content: "d" },
    { role: "assistant", content: "ab" },
  ])
})
