// `audio.speech.create` of the official client, unmodified, on the built-in weights.
import OpenAI from "openai"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { inLong } from "../../support/groups/Runs.ts"
import { presetModel } from "../../support/nodes/SpeechNode.ts"
import { startNode, type TestNode, untilIdle } from "../../support/nodes/TestNode.ts"

let node: TestNode
let openai: OpenAI
beforeAll(async () => {
  node = await startNode({ models: [presetModel] })
  openai = new OpenAI({ apiKey: node.keys.dev, baseURL: `${node.base}/v1`, maxRetries: 0 })
  // The first request waits until the model has loaded.
  await (
    await openai.audio.speech.create({ model: "tts-82m", voice: "af_bella", input: "Hi." })
  ).arrayBuffer()
})
afterAll(() => node.stop())

const sentence = "The birch canoe slid on the smooth planks. "
const longText = sentence.repeat(93).trim()

describe("4,000 characters without stream", inLong, () => {
  const asked = { model: "tts-82m", voice: "af_bella", input: longText, response_format: "pcm" } as const

  it("are played before they have been made, and are the bytes of the stream", async () => {
    expect(longText.length).toBeGreaterThan(3_950)
    const response = await openai.audio.speech.create(asked)
    const reader = response.body!.getReader()
    const { value: first } = await reader.read()
    // The engine still works on the text when its first audio arrives: most of it has not been made.
    expect(node.gauges("tts-82m").open).toBe(1)
    const parts = [first!]
    for (let part = await reader.read(); !part.done; part = await reader.read()) parts.push(part.value)
    const whole = Buffer.concat(parts)
    expect(first!.length).toBeLessThan(whole.length / 10)
    const streamed = await openai.audio.speech.create({ ...asked, ...{ stream: true } })
    expect(whole.equals(Buffer.from(await streamed.arrayBuffer()))).toBe(true)
  })
})

it("leaves nothing behind", () => untilIdle(node))
