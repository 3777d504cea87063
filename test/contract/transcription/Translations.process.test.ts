// /v1/audio/translations: the five formats, as the official client asks for them, and refusals. The model is a fake one that translates by
// writing capitals; what Whisper is told is in Fallback.test.ts.
import OpenAI, { toFile } from "openai"
import type { TranslationVerbose } from "openai/resources/audio/translations"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { listener, noise, wavOf } from "../../support/clients/LiveClient.ts"
import { post } from "../../support/clients/TranscriptionClient.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"

let node: TestNode
let openai: OpenAI
beforeAll(async () => {
  node = await startNode({
    models: [
      listener({ translates: true, languages: ["en", "fr"] }, { id: "translator" }),
      listener({}, { id: "plain" }),
      // Not loaded before its first request, so its facts are not known then.
      listener({}, { id: "late", runtime: {} }),
    ],
  })
  openai = new OpenAI({ apiKey: node.keys.dev, baseURL: `${node.base}/v1`, maxRetries: 0 })
})
afterAll(() => node.stop())

const audio = wavOf(noise(5))
const file = () => toFile(audio, "speech.wav")
const ask = (fields: Readonly<Record<string, string>>, query = "") => {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) form.append(name, value)
  form.append("file", new File([audio], "speech.wav"))
  return fetch(`${node.base}/v1/audio/translations${query}`, {
    method: "POST",
    headers: { authorization: `Bearer ${node.keys.dev}` },
    body: form,
  })
}
const spoken = async () => {
  const response = await post(node, audio, { query: { model: "translator", sync: "true" } })
  return ((await response.json()) as { text: string }).text
}

describe("translations", () => {
  it("json, as the official client asks for it", async () => {
    const text = (await spoken()).toUpperCase()
    expect(text).not.toBe("")
    const answer = await openai.audio.translations.create({ model: "translator", file: await file() })
    expect(answer).toEqual({ text })
    // OpenAI's name is the first model that transcribes.
    expect(await openai.audio.translations.create({ model: "whisper-1", file: await file() })).toEqual({
      text,
    })
  })

  it("verbose_json says that it is a translation into English", async () => {
    // The client's type of this answer has only the text.
    const answer = (await openai.audio.translations.create({
      model: "translator",
      file: await file(),
      response_format: "verbose_json",
      temperature: 0.2,
    })) as unknown as TranslationVerbose
    expect(answer).toMatchObject({ task: "translate", language: "en", duration: 5 })
    expect(
      answer.segments
        ?.map(({ text }) => text)
        .join("")
        .trim(),
    ).toBe(answer.text)
    const french = await ask({ model: "translator", response_format: "verbose_json", language: "fr" })
    expect(await french.json()).toMatchObject({ task: "translate", language: "en" })
  })

  it("text, srt and vtt", async () => {
    const text = (await spoken()).toUpperCase()
    const as = async (format: string) => {
      const response = await ask({ model: "translator", response_format: format })
      return [response.headers.get("content-type"), await response.text()]
    }
    expect(await as("text")).toEqual(["text/plain; charset=utf-8", `${text}\n`])
    const [, srt] = await as("srt")
    expect(srt).toMatch(/^1\n00:00:00,000 --> /)
    const [type, vtt] = await as("vtt")
    expect(type).toBe("text/vtt; charset=utf-8")
    expect(vtt).toMatch(/^WEBVTT\n\n/)
  })

  it("is 400 with a model that does not translate, also before that is loaded", async () => {
    for (const model of ["plain", "late"]) {
      const response = await ask({ model })
      expect(response.status).toBe(400)
      expect(JSON.stringify(await response.json())).toContain("does not translate")
    }
  })

  it("is 400 for what a translation has not, and for what is wrong", async () => {
    const problem = async (fields: Readonly<Record<string, string>>, query?: string) => {
      const response = await ask({ model: "translator", ...fields }, query)
      expect(response.status).toBe(400)
      return JSON.stringify(await response.json())
    }
    expect(await problem({ stream: "true" })).toContain("stream: is not a parameter of translations")
    expect(await problem({}, "?stream=true")).toContain("stream: is not a parameter of translations")
    expect(await problem({ punctuation: "true" })).toContain(
      "punctuation: is not a parameter of translations",
    )
    expect(await problem({ "include[]": "usage" })).toContain("include: must be logprobs")
    expect(await problem({ "include[]": "logprobs", response_format: "text" })).toContain(
      "include: is for response_format json only",
    )
    expect(await problem({ response_format: "xml" })).toContain("response_format")
    expect(await problem({ temperature: "2" })).toContain("temperature")
    expect(await problem({ language: "de" })).toContain("language")
    expect((await ask({ model: "none" })).status).toBe(404)
    expect((await ask({ model: "translator", stream: "false" })).status).toBe(200)
  })
})
