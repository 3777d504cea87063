// Pictures sent by stock clients, in responses and on the completions socket; what the list of models says; usage.
import { createOpenAI } from "@ai-sdk/openai"
import { generateText } from "ai"
import OpenAI from "openai"
import { afterAll, beforeAll, expect, it } from "vitest"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"
import { dataUrl, plain, png, quarters } from "../../support/pictures/PictureFiles.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({
    models: [fakeModel, { ...fakeModel, id: "seeing", options: { pictures: { maxPixels: 10_000 } } }],
  })
})
afterAll(() => node.stop())

const file = png(64, 32, quarters(64, 32))
const url = dataUrl(file)
const colours = "ff0000 00ff00 0000ff ffffff"
const seen = `What? [64x32 auto 808080 ${colours}]`
const options = () => ({ apiKey: node.keys.dev, baseURL: `${node.base}/v1` })

it("the openai package, in a chat and in a response", async () => {
  const openai = new OpenAI({ ...options(), maxRetries: 0 })
  const chat = await openai.chat.completions.create({
    model: "seeing",
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "What? " },
          { type: "image_url", image_url: { url } },
        ],
      },
    ],
  })
  expect(chat.choices[0]?.message.content).toBe(seen)
  const response = await openai.responses.create({
    model: "seeing",
    input: [
      {
        role: "user",
        content: [
          { type: "input_text", text: "What? " },
          { type: "input_image", image_url: url, detail: "low" },
        ],
      },
    ],
  })
  expect(response.output_text).toBe(seen.replace("auto", "low"))
  expect(response.usage).toMatchObject({
    input_tokens: 3,
    input_tokens_details: { cached_tokens: 0, image_tokens: 2 },
  })
})

it.each(["chat", "responses"] as const)("the ai SDK's %s", async (kind) => {
  const provider = createOpenAI(options())
  const { text } = await generateText({
    model: kind === "chat" ? provider.chat("seeing") : provider.responses("seeing"),
    messages: [
      {
        role: "user",
        content: [
          { type: "text", text: "What? " },
          { type: "file", data: file, mediaType: "image/png" },
        ],
      },
    ],
  })
  expect(text).toBe(seen)
})

it("a refusal of a response names its own field", async () => {
  const content = [{ type: "input_text", text: "What?" }]
  const refused = async (part: object) => {
    const body = { model: "seeing", input: [{ role: "user", content: [...content, part] }] }
    const reply = await node.post("/v1/responses", body)
    return [reply.status, ((await reply.json()) as { detail: string }).detail]
  }
  const empty = { type: "input_image", image_url: dataUrl(Buffer.alloc(0)) }
  expect(await refused(empty)).toEqual([400, "input[0].content[1]: is empty"])
  expect(await refused({ type: "input_image", image_url: url, detail: 3 })).toEqual([
    400,
    "input[0].content[1].detail: must be low, high or auto",
  ])
  expect(await refused({ type: "input_image", file_id: "file-1" })).toEqual([
    400,
    "input[0].content[1].file_id: must be absent: nothing is stored, send image_url",
  ])
})

it("a frame of the completions socket, also one that another thread parses", async () => {
  const socket = new WebSocket(`${node.socketBase}/v1/completions/ws?token=${node.keys.dev}`)
  await new Promise((resolve) => socket.addEventListener("open", resolve, { once: true }))
  const answered = (frame: object) =>
    new Promise<string>((resolve, reject) => {
      let text = ""
      const onMessage = ({ data }: MessageEvent) => {
        const { choices, error, type } = JSON.parse(String(data))
        if (error !== undefined) reject(new Error(error))
        text += choices?.[0]?.delta?.content ?? ""
        if (type !== "done") return
        socket.removeEventListener("message", onMessage)
        resolve(text)
      }
      socket.addEventListener("message", onMessage)
      socket.send(JSON.stringify(frame))
    })
  const content = [
    { type: "text", text: "What? " },
    { type: "image_url", image_url: { url } },
  ]
  const chat = { model: "seeing", messages: [{ role: "user", content }] }
  expect(await answered(chat)).toBe(seen)
  expect(await answered({ ...chat, user: "x".repeat(600_000) })).toBe(seen)
  socket.close()
})

it("usage counts the tokens of pictures, and the charge is for them and not for the reservation", async () => {
  const key = await orgWith(node, "looks", 1_000_000)
  const big = dataUrl(png(100, 100, plain(0, 0, 0)))
  const body = {
    model: "seeing",
    messages: [{ role: "user", content: [{ type: "image_url", image_url: { url: big } }] }],
  }
  const reply = await node.post("/v1/chat/completions", body, { key })
  const { usage } = (await reply.json()) as { usage: object }
  expect(usage).toMatchObject({
    prompt_tokens: 16,
    prompt_tokens_details: { cached_tokens: 0, image_tokens: 16 },
  })
  expect(await receiptsOf(node, "looks")).toMatchObject([{ inputTokens: 16 }])
  const plainChat = { model: "seeing", messages: [{ role: "user", content: "hi" }] }
  const words = (await (await node.post("/v1/chat/completions", plainChat)).json()) as { usage: object }
  expect(words.usage).not.toHaveProperty("prompt_tokens_details.image_tokens")
})

it("the list of models says which ones take pictures", async () => {
  const reply = await node.fetch("/v1/models", { headers: { authorization: `Bearer ${node.keys.dev}` } })
  const { data } = (await reply.json()) as { data: ReadonlyArray<{ id: string; input_modalities: unknown }> }
  expect(data.map(({ id, input_modalities }) => [id, input_modalities])).toEqual([
    ["fake", ["text"]],
    ["seeing", ["text", "image"]],
  ])
})
