// The load client's reading of replies: it must count the same events and find the same end however TCP cuts them.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { completionTokensIn, ReplyScanner } from "../../bench/support/ReplyScanner.ts"

const streamHead = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"

/** A chunked body of which every piece is one HTTP chunk, as uWebSockets.js writes them. */
const chunked = (pieces: ReadonlyArray<string>): string =>
  `${streamHead}${pieces.map((piece) => `${Buffer.byteLength(piece).toString(16)}\r\n${piece}\r\n`).join("")}0\r\n\r\n`

const event = (text: string): string => `data: ${JSON.stringify({ text })}\n\n`

/** Pushes `bytes` cut at the given places; the number of events. */
const pushCut = (scanner: ReplyScanner, bytes: Buffer, cuts: ReadonlyArray<number>): number => {
  const places = [0, ...cuts.map((cut) => cut % bytes.length).toSorted((a, b) => a - b), bytes.length]
  let events = 0
  for (const [at, start] of places.entries()) events += scanner.push(bytes.subarray(start, places[at + 1]))
  return events
}

const cuts = fc.array(fc.nat(), { maxLength: 40 })

describe("a stream", () => {
  it("has as many events however it is cut, whatever its texts hold", () => {
    const texts = fc.array(fc.array(fc.string({ unit: "binary" }), { minLength: 1, maxLength: 3 }), {
      maxLength: 20,
    })
    fc.assert(
      fc.property(texts, cuts, (chunks, places) => {
        const body = chunks.map((chunk) => chunk.map(event).join(""))
        const pieces: Array<Buffer> = []
        const scanner = new ReplyScanner((piece) => pieces.push(Buffer.from(piece)))
        const events = pushCut(scanner, Buffer.from(chunked(body)), places)
        expect(events).toBe(chunks.flat().length)
        expect(scanner.ended).toBe(true)
        expect(scanner.status).toBe(200)
        expect(Buffer.concat(pieces).toString()).toBe(body.join(""))
        expect(scanner.tail).toBe(body.slice(-2).join(""))
      }),
    )
  })

  it("is not over before its last chunk", () => {
    const bytes = Buffer.from(chunked([event("a"), event("b")]))
    for (let length = 0; length < bytes.length; length++) {
      const scanner = new ReplyScanner()
      scanner.push(bytes.subarray(0, length))
      expect(scanner.ended).toBe(false)
    }
  })

  it("reports its completion tokens at the end", () => {
    const usage = `data: ${JSON.stringify({ usage: { prompt_tokens: 4, completion_tokens: 62 } })}\n\n`
    const scanner = new ReplyScanner()
    scanner.push(Buffer.from(chunked([event("a"), `${usage}data: [DONE]\n\n`])))
    expect(completionTokensIn(scanner.tail)).toBe(62)
    expect(completionTokensIn("data: [DONE]")).toBeUndefined()
  })
})

describe("a reply of known length", () => {
  it("ends at its length, and the next one on the connection is read anew", () => {
    const reply = (status: number, body: string) =>
      Buffer.from(`HTTP/1.1 ${status} X\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`)
    fc.assert(
      fc.property(
        fc.string({ unit: "binary" }),
        fc.constantFrom(200, 404, 503),
        cuts,
        (text, status, places) => {
          const scanner = new ReplyScanner()
          for (const body of [JSON.stringify(text), ""]) {
            scanner.reset()
            pushCut(scanner, reply(status, body), places)
            expect(scanner.ended).toBe(true)
            expect(scanner.status).toBe(status)
            expect(scanner.tail).toBe(body)
          }
        },
      ),
    )
  })

  it("refuses what has neither length nor chunks", () => {
    expect(() => new ReplyScanner().push(Buffer.from("HTTP/1.1 200 OK\r\n\r\n"))).toThrow("without length")
    expect(() => new ReplyScanner().push(Buffer.from(`${streamHead}zz\r\n`))).toThrow("without a size")
  })
})
