// An organization finds nothing of another's prompts in a model's memory: neither cached_tokens nor evaluated tokens tell of them
// (protocol 7.2). Prompts that the catalog declares as shared are evaluated once for all.
import { Effect } from "effect"
import { afterAll, beforeAll, expect, it } from "vitest"
import { Accounts } from "#store/accounts/Accounts.ts"
import { SocketClient } from "../../support/clients/SocketClient.ts"
import { llamaModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

const shared =
  "You are a patient storyteller who answers in short sentences and never leaves out the end of a story."

let node: TestNode
beforeAll(async () => {
  const options = { ...(llamaModel.options ?? {}), slots: 4, sharedPrompts: [shared] }
  node = await startNode({ models: [{ ...llamaModel, options }] })
})
afterAll(() => node.stop())

/** The key of a new organization, or of another user of one. */
const keyOf = (org: string, user = "default"): Promise<string> =>
  node.run(
    Effect.map(
      Effect.flatMap(Accounts, (accounts) => accounts.createKey({ org, user })),
      ({ apiKey }) => apiKey,
    ),
  )

interface Usage {
  readonly prompt_tokens: number
  readonly prompt_tokens_details: { readonly cached_tokens: number }
}

const chat = (system: string, content = "Tell me of a fox.") => ({
  model: "llama",
  max_tokens: 2,
  messages: [
    { role: "system", content: system },
    { role: "user", content },
  ],
})

const usageOf = async (key: string, path: string, body: object): Promise<Usage> => {
  const response = await fetch(`${node.base}${path}`, {
    method: "POST",
    headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  })
  expect(response.status).toBe(200)
  return ((await response.json()) as { readonly usage: Usage }).usage
}
const cachedOf = async (key: string, body: object): Promise<number> =>
  (await usageOf(key, "/v1/chat/completions", body)).prompt_tokens_details.cached_tokens

const secret =
  "The secret word of this assistant is heliotrope seven. Tell it to no one who does not ask politely."

it("a right guess of another organization's system prompt finds nothing cached, its own users do", async () => {
  const [a, colleague, b] = [await keyOf("a"), await keyOf("a", "colleague"), await keyOf("b")]
  expect(await cachedOf(a, chat(secret))).toBe(0)
  expect(await cachedOf(b, chat(secret))).toBe(0)
  // The probes did not cut the sequence of the first organization.
  expect(await cachedOf(colleague, chat(secret, "Tell me of a robot."))).toBeGreaterThan(20)
  const c = await keyOf("c")
  const written = { model: "llama", max_tokens: 1, prompt: secret }
  await usageOf(a, "/v1/completions", written)
  expect((await usageOf(c, "/v1/completions", written)).prompt_tokens_details.cached_tokens).toBe(0)
})

it("nor does a guess over the completions socket, or through /v1/responses", async () => {
  const [a, b] = [await keyOf("d"), await keyOf("e")]
  const first = await cachedOf(a, chat(`Socket. ${secret}`))
  expect(first).toBe(0)
  const client = await SocketClient.open(`${node.socketBase}/v1/completions/ws?token=${b}`)
  client.send({ ...chat(`Socket. ${secret}`), request_id: "guess" })
  await client.end("guess")
  expect(client.frames.at(-1)).toMatchObject({ usage: { prompt_tokens_details: { cached_tokens: 0 } } })
  client.socket.close()
  await client.closed
  const response = await fetch(`${node.base}/v1/responses`, {
    method: "POST",
    headers: { authorization: `Bearer ${await keyOf("f")}`, "content-type": "application/json" },
    body: JSON.stringify({
      model: "llama",
      max_output_tokens: 16,
      instructions: `Socket. ${secret}`,
      input: "Tell me of a fox.",
    }),
  })
  expect(response.status).toBe(200)
  expect(await response.json()).toMatchObject({ usage: { input_tokens_details: { cached_tokens: 0 } } })
})

it("a prompt that the catalog shares is evaluated once, and what follows it belongs to its organization", async () => {
  const [a, b] = [await keyOf("g"), await keyOf("h")]
  expect(await cachedOf(a, chat(shared, "The code is 4711."))).toBe(0)
  const other = await cachedOf(b, chat(shared, "Hello."))
  expect(other).toBeGreaterThan(10)
  // The right guess of the message behind it finds as much as any other message.
  expect(await cachedOf(await keyOf("i"), chat(shared, "The code is 4711."))).toBe(other)
})
