// Bodies that are cheap to send and expensive to parse are refused before they are decoded.
import { Effect } from "effect"
import { expect, it } from "vitest"
import { decodeJson } from "#api/http/JsonBody.ts"
import { ChatRequest } from "#domain/wire/Chat.ts"
import type { InvalidRequest } from "#domain/wire/Errors.ts"

const decode = decodeJson(ChatRequest)
const problemOf = (body: unknown): InvalidRequest =>
  Effect.runSync(Effect.flip(decode(typeof body === "string" ? body : JSON.stringify(body))))

const hi = { role: "user", content: "hi" }
const list = <A>(length: number, item: A): ReadonlyArray<A> => Array.from({ length }, () => item)

it.each([
  ["millions of values", `{"x":[${"0,".repeat(3_000_000)}0]}`, "body", "has more than 100000 values"],
  ["too many messages", { model: "m", messages: list(4_097, hi) }, "messages", "must be at most 4096 items"],
  [
    "too many stops",
    { model: "m", messages: [hi], stop: list(50_000, "a") },
    "stop",
    "must be at most 4096 items",
  ],
  [
    "too many parts",
    { model: "m", messages: list(3, { role: "user", content: list(1_500, { type: "text", text: "a" }) }) },
    "messages",
    "must be at most 4096 items",
  ],
  [
    "too many messages and parts together",
    { model: "m", messages: list(2_049, { role: "user", content: [{ type: "text", text: "a" }] }) },
    "messages",
    "must be at most 4096 items",
  ],
  [
    "too many allowed tools",
    {
      model: "m",
      messages: [hi],
      tool_choice: { type: "allowed_tools", allowed_tools: { tools: list(5_000, {}) } },
    },
    "tool_choice.allowed_tools.tools",
    "must be at most 4096 items",
  ],
])("%s: refused by name", (_, body, field, problem) => {
  expect(problemOf(body)).toMatchObject({ field, problem })
})

it("takes what is large and honest", () => {
  const content = "a, b, c. ".repeat(20_000)
  const body = { model: "m", messages: [...list(100, hi), { role: "user", content }] }
  expect(Effect.runSync(decode(JSON.stringify(body))).messages).toHaveLength(101)
})
