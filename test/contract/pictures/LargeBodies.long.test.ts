// Bodies of chats over 8 MB: read for a model that takes pictures, refused for others, and parsed and decoded while other
// requests are answered (protocol 7.15, 17.1).
import { randomBytes } from "node:crypto"
import { afterAll, beforeAll, expect, it } from "vitest"
import { fakeModel } from "../../support/nodes/TestCatalog.ts"
import { startNode, type TestNode } from "../../support/nodes/TestNode.ts"
import { dataUrl, plain, png, pngChunk } from "../../support/pictures/PictureFiles.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({
    models: [fakeModel, { ...fakeModel, id: "seeing", options: { pictures: { maxPixels: 10_000 } } }],
  })
})
afterAll(() => node.stop())

/** A red picture in a file of this many bytes, which no compression makes smaller. */
const padded = (bytes: number) =>
  dataUrl(png(20, 10, plain(255, 0, 0), { before: [pngChunk("teXt", randomBytes(bytes))] }))

const bodyOf = (model: string, ...urls: ReadonlyArray<string>): string =>
  JSON.stringify({
    model,
    messages: [{ role: "user", content: urls.map((url) => ({ type: "image_url", image_url: { url } })) }],
  })

const send = async (to: TestNode, body: string, headers: Record<string, string> = {}) => {
  const response = await to.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${to.keys.dev}`, ...headers },
    body,
  })
  return { status: response.status, text: await response.text() }
}

const red = "[20x10 auto ff0000"

it("16 pictures in 31 MB are seen", async () => {
  const body = bodyOf("seeing", ...Array.from({ length: 16 }, () => padded(1_450_000)))
  expect(body.length).toBeGreaterThan(30_500_000)
  const { status, text } = await send(node, body)
  expect([status, text.split(red).length - 1]).toEqual([200, 16])
})

it("a request with an Idempotency-Key may be as large", async () => {
  const body = bodyOf("seeing", padded(20_000_000))
  const first = await send(node, body, { "idempotency-key": "large" })
  expect(first).toEqual({ status: 200, text: expect.stringContaining(red) })
  expect(await send(node, body, { "idempotency-key": "large" })).toEqual(first)
})

const tooLarge = (limit: number) => ({
  status: 413,
  text: JSON.stringify({ detail: `body: larger than ${limit} bytes` }),
})

it.each<[name: string, model: string, bytes: number, limit: number]>([
  ["more than 32 MB", "seeing", 24_500_000, 32_000_000],
  ["more than 8 MB for a model of text", "fake", 7_000_000, 8_000_000],
])("%s is refused", async (_, model, bytes, limit) => {
  expect(await send(node, bodyOf(model, padded(bytes)))).toEqual(tooLarge(limit))
})

it("more than 8 MB on a node without a model that sees is refused", async () => {
  const blind = await startNode({ models: [fakeModel] })
  try {
    expect(await send(blind, bodyOf("fake", padded(7_000_000)))).toEqual(tooLarge(8_000_000))
  } finally {
    await blind.stop()
  }
})

it("the text beside pictures has the limit of every body", async () => {
  const text = { type: "text", text: "x".repeat(8_000_000) }
  const messages = [
    { role: "user", content: [text, { type: "image_url", image_url: { url: padded(1_000) } }] },
  ]
  const problem = "body: larger than 8000000 bytes besides its pictures"
  const refused = { status: 413, text: JSON.stringify({ detail: problem }) }
  expect(await send(node, JSON.stringify({ model: "seeing", messages }))).toEqual(refused)
  expect(await send(node, bodyOf("seeing", `https://example.com/${"a".repeat(8_000_000)}`))).toEqual(refused)
  // Whatever else is wrong with it.
  const commas = bodyOf("seeing", padded(1_000)).replace("{", `{"a":[${"0,".repeat(4_000_000)}0],`)
  expect(await send(node, commas)).toEqual(refused)
  expect(await send(node, `${bodyOf("seeing", padded(1_000))}${"}".repeat(8_000_000)}`)).toEqual(refused)
  const pictures = `${bodyOf("seeing", padded(6_000_000))}}`
  expect(await send(node, pictures)).toEqual({
    status: 400,
    text: JSON.stringify({ detail: "body: is not valid JSON" }),
  })
})

it("a user has memory for two of the largest bodies at a time", async () => {
  const body = bodyOf("seeing", padded(23_500_000))
  const statuses = (await Promise.all(Array.from({ length: 5 }, () => send(node, body)))).map(
    ({ status }) => status,
  )
  expect(statuses.filter((status) => status === 200).length).toBeGreaterThanOrEqual(2)
  expect(statuses.filter((status) => status !== 200 && status !== 503)).toEqual([])
  // Given back.
  expect((await send(node, body)).status).toBe(200)
})

it("a body without Content-Length has the limit of every other", async () => {
  const response = await node.fetch("/v1/chat/completions", {
    method: "POST",
    headers: { authorization: `Bearer ${node.keys.dev}` },
    body: new Blob([bodyOf("seeing", padded(7_000_000))]).stream(),
    duplex: "half",
  } as RequestInit)
  expect([response.status, await response.text()]).toEqual([
    413,
    JSON.stringify({ detail: "body: larger than 8000000 bytes" }),
  ])
})
