// Continuous batching does not change output: on the real model a stream has the same text alone and among others.
import { afterAll, beforeAll, expect, it } from "vitest"
import { TextStream, textOf } from "../support/clients/TextStream.ts"
import { llamaModel } from "../support/nodes/TestCatalog.ts"
import { startNode, type TestNode, untilIdle } from "../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: [{ ...llamaModel, runtime: { load: "start" } }] })
})
afterAll(() => node.stop())

const say = async (seed: number, content: string): Promise<string> => {
  const response = await node.post("/v1/chat/completions", {
    model: "llama",
    messages: [{ role: "user", content }],
    temperature: 1,
    max_tokens: 80,
    min_tokens: 40,
    stream: true,
    seed,
  })
  const stream = new TextStream(response)
  expect(await stream.toEnd()).toBe("complete")
  return textOf(stream.events)
}

it("sixteen streams with one seed and one prompt give the text of one alone", async () => {
  const story = "Tell me a story about a cat."
  const alone = await say(42, story)
  expect(alone.length).toBeGreaterThan(20)
  const together = await Promise.all(Array.from({ length: 16 }, () => say(42, story)))
  expect(new Set(together)).toEqual(new Set([alone]))
  await untilIdle(node)
})

it("forty streams of different prompts, more than there are slots, give the texts that each gives alone", async () => {
  const prompts = Array.from(
    { length: 40 },
    (_, i) => [i, `Tell me a story about ${i} ${"small ".repeat(i)}birds.`] as const,
  )
  const together = await Promise.all(prompts.map(([seed, prompt]) => say(seed, prompt)))
  for (const [seed, prompt] of prompts.filter((_, i) => i % 8 === 0))
    expect(together[seed]).toBe(await say(seed, prompt))
  expect(new Set(together).size).toBeGreaterThan(30)
})
