// Chat requests to the fake engine, whose reply is a script in the user's message, and what comes back.
import { expect } from "vitest"
import { script } from "../nodes/FakeNode.ts"
import type { TestNode } from "../nodes/TestNode.ts"
import { parseEventStream } from "./EventStream.ts"

export const weather = {
  type: "function",
  function: {
    name: "get_weather",
    description: "The weather of a city",
    parameters: { type: "object", properties: { city: { type: "string" } }, required: ["city"] },
  },
}
export const light = { type: "function", function: { name: "turn_on_light" } }
/** A call of `weather` in a script. */
export const rome = { name: "get_weather", arguments: { city: "Rome" } }
export const user = (content: string) => ({ role: "user", content })
export const callId = expect.stringMatching(/^call_[0-9a-z]{24}$/)

interface Choice {
  readonly index: number
  readonly message: Readonly<Record<string, unknown>>
  readonly logprobs?: unknown
  readonly finish_reason: string
}
interface Reply {
  readonly choices: ReadonlyArray<Choice>
  readonly usage: unknown
  readonly system_fingerprint: string
}
interface Chunk {
  readonly choices: ReadonlyArray<Readonly<Record<string, unknown>>>
  readonly usage?: unknown
}

/** `node` is called with each request: a file's node starts after its tests are defined. */
export const fakeChat = (node: () => TestNode) => {
  const path = "/v1/chat/completions"
  const body = (steps: object, more: object) => ({
    model: "fake",
    messages: [user(script({ ...steps }))],
    ...more,
  })
  const post = async (request: object): Promise<Reply> => {
    const response = await node().post(path, request)
    const text = await response.text()
    expect([response.status, text]).toEqual([200, expect.any(String)])
    return JSON.parse(text) as Reply
  }
  const whole = (steps: object, more: object) => post(body(steps, more))
  const stream = async (steps: object, more: object): Promise<ReadonlyArray<Chunk>> => {
    const response = await node().post(path, { ...body(steps, more), stream: true })
    const events = parseEventStream(await response.text())
    expect(events.pop()).toBe("[DONE]")
    return events.map((data) => JSON.parse(data) as Chunk)
  }
  /** The choices of a stream's chunks. */
  const choices = async (steps: object, more: object) =>
    (await stream(steps, more)).flatMap((chunk) => chunk.choices)
  /** What the engine was sent beside the prompt and the number of its owner. */
  const sent = async (more: object) => {
    const reply = await whole({ request: true }, more)
    const { owner, ...terms } = JSON.parse(String(reply.choices[0]?.message.content)) as Readonly<
      Record<string, unknown>
    >
    expect(owner).toBeGreaterThan(0)
    return terms
  }
  return { post, whole, stream, choices, sent }
}
