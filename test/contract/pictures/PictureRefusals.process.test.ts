// Pictures that cannot be used: each is refused by its place in the request, costs nothing, and leaves the node and its
// decoders as they were (protocol 7.15).
import { deflateSync } from "node:zlib"
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest"
import { orgWith, receiptsOf } from "../../support/nodes/Ledger.ts"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"
import {
  bmp,
  dataUrl,
  gif,
  manyScans,
  plain,
  png,
  pngChunk,
  pngHeader,
  pngOf,
} from "../../support/pictures/PictureFiles.ts"

let node: TestNode
/** Key of an organization that can pay for one request at a time. */
let tight: string
beforeAll(async () => {
  node = await startNode({
    models: [fakeModel, { ...fakeModel, id: "seeing", options: { pictures: { maxPixels: 10_000 } } }],
    settings: { httpPictures: "true" },
  })
  // The reservation of one request is about 150: 157 tokens of the picture, 150 of the answer.
  tight = await orgWith(node, "tight", 250)
})
afterAll(() => node.stop())

const small = png(4, 4, plain(255, 0, 0))
const image = (url: unknown, more: object = {}) => ({ type: "image_url", image_url: { url, ...more } })
const user = (...content: ReadonlyArray<unknown>) => ({ role: "user", content })

const send = async (messages: unknown, model = "seeing") => {
  const response = await node.post("/v1/chat/completions", { model, messages }, { key: tight })
  const { detail = "" } = (await response.json()) as { detail?: string }
  return { status: response.status, detail }
}

const file = (bytes: Uint8Array, type?: string) => [user(image(dataUrl(bytes, type)))]

const first = "messages[0].content[0]"
const compressed = (bytes: number) => deflateSync(Buffer.alloc(bytes))

const header30000 = pngOf(pngHeader(30_000, 30_000), compressed(10)).subarray(0, 33)
const jpegHeader = Buffer.from(
  "ffd8ffc00011087530753003012200021101031101ffda000c03010002110311003f00",
  "hex",
)

const wideGif = (): Buffer => {
  const bytes = gif(8, 8, [plain(255, 0, 0)])
  bytes.writeUInt16LE(65_535, 6)
  bytes.writeUInt16LE(65_535, 8)
  return bytes
}

describe("is refused:", () => {
  afterEach(async () => {
    // The same node and decoder still see.
    const after = await node.post("/v1/chat/completions", { model: "seeing", messages: file(small) })
    expect([after.status, await after.text()]).toEqual([200, expect.stringContaining("[4x4 auto ff0000")])
  })

  it.each<[name: string, messages: unknown, field: string, problem: RegExp]>([
    ["a truncated PNG", file(small.subarray(0, 50)), first, /ends before its picture does/],
    ["a PNG whose pixels end early", file(pngOf(pngHeader(40, 40), compressed(100))), first, /is damaged/],
    ["an empty file", file(Buffer.alloc(0)), first, /is empty/],
    ["30,000 x 30,000, header only", file(header30000), first, /30000x30000 pixels, the limit is 50000000/],
    ["a JPEG header of this size", file(jpegHeader), first, /30000x30000 pixels, the limit is 50000000/],
    ["a JPEG of 101 scans", file(manyScans(7_000, 101)), first, /has more than 100 scans/],
    ["a decompression bomb", file(pngOf(pngHeader(60_000, 60_000), compressed(4_000_000))), first, /limit/],
    ["a picture without pixels", file(pngOf(pngHeader(0, 5), compressed(5))), first, /has no pixels/],
    ["a GIF screen of 65,535 x 65,535", file(wideGif()), first, /limit is 50000000/],
    ["a BMP that promises more rows", file(bmp(4, 4, plain(0, 0, 0)).subarray(0, 60)), first, /is damaged/],
    ["SVG named PNG", file(Buffer.from("<svg xmlns='http://www.w3.org/2000/svg'/>")), first, /is not a PNG/],
    ["HTML named PNG", file(Buffer.from("<!doctype html><html></html>")), first, /is not a PNG/],
    ["a WAV file", file(Buffer.from("RIFF\x24\0\0\0WAVEfmt ")), first, /is not a PNG/],
    ["a data URL without base64", [user(image("data:image/svg+xml,<svg/>"))], first, /with base64/],
    ["base64 that is none", [user(image("data:image/png;base64,####"))], first, /not base64/],
    ["no address", [user(image("picture.png"))], first, /not a URL/],
    ["a path", [user(image("file:///etc/passwd"))], first, /must be http or https/],
    ["a private address", [user(image("http://10.0.0.1/a.png"))], first, /public address/],
    ["this machine", [user(image("http://127.0.0.1:1/a.png"))], first, /public address/],
    ["an address without a url", [user({ type: "image_url" })], `${first}.image_url`, /an object with a url/],
    [
      "another detail",
      [user(image(dataUrl(small), { detail: "huge" }))],
      `${first}.image_url.detail`,
      /low, high/,
    ],
    [
      "the 17th picture",
      [user({ type: "text", text: "x" }, ...Array.from({ length: 17 }, () => image(dataUrl(small))))],
      "messages[0].content[17]",
      /at most 16 pictures/,
    ],
    [
      "a picture in a system message",
      [{ role: "system", content: [image(dataUrl(small))] }, user({ type: "text", text: "x" })],
      first,
      /user message/,
    ],
    [
      "a picture in an assistant message",
      [user({ type: "text", text: "x" }), { role: "assistant", content: [image(dataUrl(small))] }],
      "messages[1].content[0]",
      /user message/,
    ],
    ["sound", [user({ type: "input_audio", input_audio: {} })], first, /only text and pictures/],
  ])("%s", async (_, messages, field, problem) => {
    const { detail, status } = await send(messages)
    expect([status, detail.slice(0, field.length + 2)]).toEqual([400, `${field}: `])
    expect(detail).toMatch(problem)
    expect(detail.length).toBeLessThan(300)
  })

  it("nothing is charged or reserved", async () => {
    expect(await receiptsOf(node, "tight")).toEqual([])
    expect((await send(file(small))).status).toBe(200)
    expect(await receiptsOf(node, "tight")).toHaveLength(1)
  })

  it("a picture for a model of text", async () => {
    expect(await send(file(small), "fake")).toEqual({
      status: 400,
      detail: `${first}: only text is supported by fake`,
    })
  })
})

describe("is a picture all the same:", () => {
  const seen = async (bytes: Uint8Array, type?: string) => {
    const response = await node.post("/v1/chat/completions", { model: "seeing", messages: file(bytes, type) })
    return [response.status, await response.text()]
  }
  it.each<[name: string, bytes: Uint8Array, type: string, size: string]>([
    ["a PNG called JPEG", small, "image/jpeg", "4x4"],
    ["a BMP called text", bmp(3, 2, plain(0, 0, 255)), "text/plain", "3x2"],
    [
      "50 MB of rows behind a header of seven",
      pngOf(pngHeader(7, 7), compressed(50_000_000)),
      "image/png",
      "7x7",
    ],
    ["a JPEG of 100 scans", manyScans(700, 100), "image/jpeg", "100x100"],
    ["1 x 1", png(1, 1, plain(9, 9, 9)), "image/png", "1x1"],
    ["4,000 x 1", png(4_000, 1, plain(9, 9, 9)), "image/png", "4000x1"],
    ["1 x 4,000", png(1, 4_000, plain(9, 9, 9)), "image/png", "1x4000"],
    ["40,000 x 1", png(40_000, 1, plain(9, 9, 9)), "image/png", "10000x1"],
    [
      "text in a chunk of a PNG",
      png(2, 2, plain(9, 9, 9), { before: [pngChunk("tEXt", Buffer.from("a\0b"))] }),
      "",
      "2x2",
    ],
    [
      "20,000 frames",
      gif(
        2,
        2,
        Array.from({ length: 20_000 }, () => plain(0, 255, 0)),
      ),
      "image/gif",
      "2x2",
    ],
  ])("%s", async (_, bytes, type, size) => {
    expect(await seen(bytes, type)).toEqual([200, expect.stringContaining(`[${size} auto `)])
  })
})
