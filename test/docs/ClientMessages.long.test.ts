// The table of what OpenAI's packages print when this server refuses (protocol 3.7), printed again by both of their versions with a
// node of the built-in models.
import { readFileSync } from "node:fs"
import OpenAI from "openai"
import OpenAI7 from "openai-7"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { repository } from "../support/docs/GuideBlocks.ts"
import { builtInModel } from "../support/nodes/BuiltInModels.ts"
import { presetModel, withoutWeights } from "../support/nodes/SpeechNode.ts"
import { startNode, type TestNode } from "../support/nodes/TestNode.ts"

const texts = ["llm-3.5-27b", "llm-3.8-27b", "llm-3.5-9b", "llm-3.6-35b-a3b"]
let node: TestNode
let limited: TestNode
beforeAll(async () => {
  const runtime = { load: "demand" }
  const models = [
    ...texts.map((id) => builtInModel(id, { runtime })),
    { ...withoutWeights(presetModel), runtime },
  ]
  ;[node, limited] = await Promise.all([startNode({ models }), startNode({ models, rateLimit: 1 })])
})
afterAll(() => Promise.all([node.stop(), limited.stop()]))

const [model = ""] = texts
const hi = [{ role: "user" as const, content: "Hi" }]
const speech = { model: "tts-82m", voice: "af_bella", input: "Hi" }
const schema = { type: "object", properties: { a: { type: "nothing" } } }

interface Request {
  readonly ask: (openai: OpenAI) => Promise<unknown>
  readonly key?: string
}

/** The rows of the page, by their first cell. */
const requests: Readonly<Record<string, Request>> = {
  "no key": { ask: (openai) => openai.models.list({ headers: { Authorization: null } }) },
  "a wrong key": { key: `svc_${"0".repeat(32)}`, ask: (openai) => openai.models.list() },
  "a key of another server": { key: "sk-proj-1234", ask: (openai) => openai.models.list() },
  "an unknown model": { ask: (openai) => openai.chat.completions.create({ model: "gpt-4o", messages: hi }) },
  "an unknown voice": { ask: (openai) => openai.audio.speech.create({ ...speech, voice: "bob" }) },
  "speech as `opus`, `flac` or `aac` without `stream`": {
    ask: async (openai) => {
      const messages = new Set<string>()
      for (const response_format of ["opus", "flac", "aac"] as const)
        await openai.audio.speech.create({ ...speech, response_format }).catch((cause: Error) => {
          messages.add(cause.message)
        })
      throw new Error([...messages].join(" or "))
    },
  },
  "a prompt that is too long": {
    ask: (openai) =>
      openai.chat.completions.create({
        model,
        messages: [{ role: "user", content: "word ".repeat(20_000) }],
      }),
  },
  "a text that is too long to speak": {
    ask: (openai) => openai.audio.speech.create({ ...speech, input: "Hi. ".repeat(2_000) }),
  },
  "a wrong schema": {
    ask: (openai) =>
      openai.chat.completions.create({
        model,
        messages: hi,
        response_format: { type: "json_schema", json_schema: { name: "a", schema } },
      }),
  },
  "more requests than the rate allows": {
    ask: async (openai) => {
      const limits = openai.withOptions({ baseURL: `${limited.base}/v1`, apiKey: limited.keys.dev })
      // One is admitted, whichever version of the client sends it.
      await limits.models.list().catch(() => {})
      await limits.models.list()
    },
  },
  "a base URL without `/v1`": {
    ask: (openai) => openai.withOptions({ baseURL: node.base }).models.list(),
  },
  "an endpoint that is not there": { ask: (openai) => openai.vectorStores.list() },
}

const rows = new Map(
  (readFileSync(`${repository}/docs/protocol/errors.md`, "utf8").split("### 3.7 ")[1] ?? "")
    .split("\n")
    .map((line) => line.split("|").map((cell) => cell.trim()))
    .filter((cells) => cells.length === 4 && cells[1] !== "request" && cells[1] !== "---")
    .map((cells) => [cells[1] ?? "", /^`(.*)`$/.exec(cells[2] ?? "")?.[1] ?? ""] as const),
)

/** Counts that depend on the weights or the clock are N on the page. */
const printed = (message: string): string =>
  message.replace(/\d+ prompt tokens/, "N prompt tokens").replace(/Try again in \d+ s/, "Try again in N s")

it("has a row for each of these requests", () => {
  expect([...rows.keys()]).toEqual(Object.keys(requests))
})

describe.each([
  ["6", OpenAI],
  ["7", OpenAI7 as unknown as typeof OpenAI],
])("version %s of the package prints", (_, Client) => {
  it.each(Object.keys(requests))("for %s what the page says", async (name) => {
    const { ask, key } = requests[name]!
    const openai = new Client({ apiKey: key ?? node.keys.dev, baseURL: `${node.base}/v1`, maxRetries: 0 })
    const message = await ask(openai).then(
      () => "no error",
      (cause: Error) => cause.message,
    )
    expect(printed(message)).toBe(rows.get(name))
    expect(message).not.toMatch(/[{}]|no body/)
  })
})
