// Pictures in chats over HTTP: what the model sees is what was sent, in its order (protocol 7.15).
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"
import { bmp, dataUrl, gif, plain, png, quarters } from "../../support/pictures/PictureFiles.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({
    models: [fakeModel, { ...fakeModel, id: "seeing", options: { pictures: { maxPixels: 10_000 } } }],
  })
})
afterAll(() => node.stop())

interface Answer {
  readonly detail?: string
  readonly choices: ReadonlyArray<{ readonly message: { readonly content: string } }>
  readonly usage: { readonly prompt_tokens: number; readonly prompt_tokens_details: object }
}

const text = (value: string) => ({ type: "text", text: value })
const image = (url: string, detail?: string) => ({
  type: "image_url",
  image_url: { url, ...(detail === undefined ? {} : { detail }) },
})

const ask = async (content: unknown, more: object = {}) => {
  const response = await node.post("/v1/chat/completions", {
    model: "seeing",
    messages: [{ role: "user", content }],
    ...more,
  })
  return { status: response.status, body: (await response.json()) as Answer }
}

const seen = async (content: unknown): Promise<string> => {
  const { body, status } = await ask(content)
  expect([status, body.detail]).toEqual([200, undefined])
  return body.choices[0]?.message.content ?? ""
}

const four = "ff0000 00ff00 0000ff ffffff"

describe("a picture in a user message", () => {
  it("is seen in its place between texts, in its size and with its colours", async () => {
    const red = dataUrl(png(40, 30, plain(255, 0, 0)))
    const many = dataUrl(bmp(6, 4, quarters(6, 4)), "image/bmp")
    expect(await seen([text("first "), image(red), text(" then "), image(many, "low"), text(" end")])).toBe(
      `first [40x30 auto ff0000 ff0000 ff0000 ff0000 ff0000] then [6x4 low 808080 ${four}] end`,
    )
  })

  it("is scaled down to what the model takes, keeping its shape", async () => {
    const wide = dataUrl(png(400, 100, quarters(400, 100)))
    expect(await seen([image(wide)])).toMatch(/^\[200x50 auto 80[78]/)
  })

  it("is the first frame of an animation", async () => {
    const two = dataUrl(gif(8, 8, [plain(255, 0, 0), plain(0, 255, 0)]), "image/gif")
    expect(await seen([image(two)])).toContain("ff0000 ff0000")
  })

  it("is refused by a model for text alone", async () => {
    const content = [text("What?"), image(dataUrl(png(4, 4, plain(0, 0, 0))))]
    expect(await ask(content, { model: "fake" })).toEqual({
      status: 400,
      body: { detail: "messages[0].content[1]: only text is supported by fake" },
    })
  })
})
