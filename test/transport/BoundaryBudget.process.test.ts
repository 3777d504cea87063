// Multipart bodies of nothing but boundaries: the parser does not count them as parts.
import { Effect, Stream } from "effect"
import { HttpRouter, HttpServerRequest, HttpServerResponse, Multipart } from "effect/http"
import { afterAll, beforeAll, describe, expect, it } from "vitest"
import { BoundaryBudget, boundaryOf } from "#transport/BoundaryBudget.ts"
import { rawRequest, requestBytes } from "../support/clients/RawHttp.ts"
import { startListener, type TestListener } from "./TestListener.ts"

let server: TestListener
beforeAll(async () => {
  const parts = Effect.gen(function* () {
    const request = yield* HttpServerRequest.HttpServerRequest
    const all = yield* Stream.runCollect(request.multipartStream)
    return HttpServerResponse.text(String(all.length))
  }).pipe(
    Effect.provideService(Multipart.MaxParts, 4),
    Effect.catch((error) => Effect.succeed(HttpServerResponse.text(error.reason._tag, { status: 400 }))),
  )
  server = await startListener([HttpRouter.route("POST", "/parts", parts)])
})
afterAll(() => server.stop())

const send = async (body: string, contentType = "multipart/form-data; boundary=b"): Promise<string> =>
  (
    await rawRequest(server.port, requestBytes("POST", "/parts", { "content-type": contentType }, body))
  ).body.toString()

const part = '--b\r\ncontent-disposition: form-data; name="a"\r\n\r\nx\r\n'

describe("a multipart body", () => {
  it("of a million boundaries is refused early", async () => {
    expect(await send("\r\n--b".repeat(1_000_000))).toBe("TooManyParts")
    expect(await send(`${part}${"\r\n--b".repeat(100)}--\r\n`)).toBe("TooManyParts")
  })

  it("has as many parts as its handler allows", async () => {
    expect(await send(`${part.repeat(4)}--b--\r\n`)).toBe("4")
    expect(await send(`\r\n${part.repeat(4)}--b--\r\n`)).toBe("4")
    expect(await send(`${part.repeat(5)}--b--\r\n`)).toBe("TooManyParts")
  })

  it("needs one boundary", async () => {
    const body = `${part}--b--\r\n`
    expect(await send(body, 'multipart/form-data; charset=utf-8; boundary="b"')).toBe("1")
    for (const type of [
      "multipart/form-data",
      "multipart/form-data; boundary=",
      "multipart/form-data; boundary=b; boundary=c",
      "multipart/form-data; boundary=b; BOUNDARY=b",
      'multipart/form-data; boundary="b\\"',
      `multipart/form-data; boundary=${"b".repeat(71)}`,
    ]) {
      expect([type, await send(body, type)]).toEqual([type, "Parse"])
    }
  })
})

describe("boundaryOf", () => {
  it.each([
    [
      "multipart/form-data; boundary=----WebKitFormBoundary7MA4YWxkTrZu0gW",
      "----WebKitFormBoundary7MA4YWxkTrZu0gW",
    ],
    ["multipart/form-data; boundary=----geckoformboundary1a2b", "----geckoformboundary1a2b"],
    [
      "multipart/form-data; boundary=------------------------d74496d66958873e",
      "------------------------d74496d66958873e",
    ],
    ["multipart/form-data;boundary=formdata-undici-0123", "formdata-undici-0123"],
    ['multipart/form-data; boundary="a=b:c"; charset=utf-8', "a=b:c"],
    ["Multipart/Form-Data; Boundary=X", "X"],
  ])("%s", (type, boundary) => expect(boundaryOf(type)).toBe(boundary))
})

describe("BoundaryBudget", () => {
  it("counts over all pieces", () => {
    const budget = new BoundaryBudget("b", 3)
    const piece = Buffer.from("x\r\n--b\r\n--by")
    expect(budget.take(piece)).toBe(true)
    expect(budget.take(Buffer.from("--b--b"))).toBe(true)
    expect(budget.take(piece)).toBe(false)
  })
})
