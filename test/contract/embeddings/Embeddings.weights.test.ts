// POST /v1/embeddings with the real engine on generated weights: a large request and a small one at the same time.
import { afterAll, beforeAll, expect, it } from "vitest"
import { writeBert } from "../../support/engines/EmbeddingModels.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { uses } from "../../support/groups/Uses.ts"
import { startNode, type TestNode, temporaryDir } from "../../support/nodes/TestNode.ts"

const folder = temporaryDir()
let node: TestNode
beforeAll(async () => {
  uses("weights", "a model's weights")
  const source = await writeBert(folder.path)
  node = await startNode({
    models: [{ id: "bert", kind: "embedding", adapter: "llama-embedding", files: { weights: { source } } }],
  })
})
afterAll(async () => {
  await node.stop()
  folder.remove()
})

const ask = async (input: unknown) => {
  const response = await node.post("/v1/embeddings", { model: "bert", input })
  return {
    status: response.status,
    body: (await response.json()) as { readonly data: ReadonlyArray<unknown> },
  }
}

it("answers 2,048 inputs, and small requests while it computes them", inLong, async () => {
  expect((await ask("a")).body).toMatchObject({ usage: { prompt_tokens: 3 } })
  let done = false
  const large = ask(
    Array.from({ length: 2_048 }, () => "the of and to in is that for it as was with be by on"),
  ).finally(() => {
    done = true
  })
  let others = 0
  while (!done) {
    expect((await ask("a fox")).status).toBe(200)
    others++
  }
  expect((await large).body.data.length).toBe(2_048)
  expect(others).toBeGreaterThan(3)
})

it("names the input that is too long, with both numbers", async () => {
  const { body, status } = await ask(["a", "b", "c", "the ".repeat(100)])
  expect(status).toBe(400)
  expect(JSON.stringify(body)).toContain(
    "input[3]: 102 prompt tokens do not fit the model's context of 64 tokens",
  )
})
