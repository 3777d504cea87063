// The replies of different servers to a streamed chat.
import { describe, expect, it } from "vitest"
import { RequestFailed } from "#harness/client/Failures.ts"
import { ChatReply } from "#harness/client/TextRequest.ts"

const chunk = (delta: object, rest: object = {}) =>
  JSON.stringify({ choices: [{ index: 0, delta, ...rest }] })

/** Each event ten milliseconds after the one before, from 10 on; the request was due at 0. */
const read = (...events: ReadonlyArray<string>) => {
  const reply = new ChatReply()
  for (const [at, event] of events.entries()) reply.event(event, 10 * (at + 1))
  return reply.measured(0, 10 * (events.length + 1))
}

describe("the first token", () => {
  it("is not the chunk with the role, nor an empty delta", () => {
    const { figures, pooled } = read(
      chunk({ role: "assistant", content: "" }),
      chunk({ content: null }),
      chunk({}),
      chunk({ content: "a" }),
      chunk({ content: "b" }),
      chunk({}, { finish_reason: "stop" }),
      "[DONE]",
    )
    expect(figures).toMatchObject({ ttft: 40, e2e: 80, tokens: 2, gap: 10, tpot: 10 })
    expect(pooled?.itl).toEqual([10])
  })

  it.each([
    ["reasoning_content", { reasoning_content: "hm" }],
    ["reasoning", { reasoning: "hm" }],
    ["a tool call", { tool_calls: [{ index: 0, function: { name: "f" } }] }],
    ["a refusal", { refusal: "no" }],
  ])("may be %s", (_, delta) => {
    const { figures } = read(chunk({ role: "assistant" }), chunk(delta), chunk({ content: "x" }), "[DONE]")
    expect(figures).toMatchObject({ ttft: 20, tokens: 2 })
  })

  it("may be text of the older completions", () => {
    expect(read('{"choices":[{"text":"a","finish_reason":null}]}', "[DONE]").figures.ttft).toBe(10)
  })
})

it("takes the server's counts from a last chunk without choices", () => {
  const usage = JSON.stringify({ choices: [], usage: { completion_tokens: 5, prompt_tokens: 7 } })
  const { figures } = read(
    chunk({ content: "a b" }),
    chunk({ content: " c d e" }, { finish_reason: "stop" }),
    usage,
  )
  expect(figures).toMatchObject({ tokens: 5, prompt_tokens: 7, tpot: 2.5 })
})

it("does not believe impossible counts", () => {
  const usage = JSON.stringify({ choices: [], usage: { completion_tokens: "many", prompt_tokens: -1 } })
  const { figures } = read(chunk({ content: "a" }), usage, "[DONE]")
  expect(figures.tokens).toBe(1)
  expect(figures.prompt_tokens).toBeUndefined()
})

it("takes a whole reply as one piece", () => {
  const whole = JSON.stringify({ choices: [{ message: { content: "all" }, finish_reason: "stop" }] })
  expect(read(whole).figures).toMatchObject({ ttft: 10, tokens: 1 })
})

it("a reply without any text has no first token and no failure", () => {
  expect(read(chunk({ role: "assistant" }, { finish_reason: "stop" }), "[DONE]").figures.ttft).toBeUndefined()
})

describe("fails", () => {
  const keyOf = (work: () => unknown): string | undefined => {
    try {
      work()
    } catch (cause) {
      if (cause instanceof RequestFailed) return cause.key
    }
    return undefined
  }

  it("at an error inside the stream", () => {
    expect(keyOf(() => read('{"error":{"message":"out of memory"}}'))).toBe("error event")
  })

  it("at an event that is not JSON", () => {
    expect(keyOf(() => read("hello"))).toBe("wrong reply")
  })

  it("where the stream ends in the middle", () => {
    expect(keyOf(() => read(chunk({ content: "a" })))).toBe("closed early")
  })

  it.each([["null"], ["[]"], ['{"choices":"x"}'], ['{"choices":[null]}'], ['{"choices":[{"delta":7}]}']])(
    "in no other way for %s",
    (event) => {
      expect(["closed early", "wrong reply"]).toContain(keyOf(() => read(event)))
    },
  )
})
