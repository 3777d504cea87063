// Server-sent events of any server, however their bytes are split.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { EventStream } from "#harness/client/EventStream.ts"
import { RequestFailed } from "#harness/client/Failures.ts"

const read = (chunks: ReadonlyArray<Uint8Array>): ReadonlyArray<string> => {
  const events: Array<string> = []
  const stream = new EventStream((data) => events.push(data))
  for (const chunk of chunks) stream.read(chunk, 0)
  stream.end(0)
  return events
}

const bytes = (text: string): Uint8Array => new TextEncoder().encode(text)

const splitAt = (all: Uint8Array, cuts: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const places = [0, ...cuts.map((cut) => cut % (all.length + 1)), all.length].toSorted((a, b) => a - b)
  return places.slice(1).map((to, at) => all.subarray(places[at], to))
}

/** Text of one line, that does not begin with the space which is taken as a separator. */
const line = fc
  .string({ unit: "grapheme", maxLength: 20 })
  .map((text) => text.replaceAll(/[\r\n]/g, "").trimStart())

it("reads the same events with every end of line, with and without a space, split anywhere", () => {
  fc.assert(
    fc.property(
      fc.array(fc.array(line, { minLength: 1, maxLength: 3 }), { maxLength: 6 }),
      fc.constantFrom("\n", "\r\n", "\r"),
      fc.constantFrom("data:", "data: "),
      fc.constantFrom("", ": a comment", "event: message", "id: 1"),
      fc.array(fc.nat(), { maxLength: 12 }),
      (events, end, field, other, cuts) => {
        const text = events
          .map((lines) =>
            [other, ...lines.map((each) => `${field}${each}`)].filter((each) => each !== "").join(end),
          )
          .map((event) => event + end + end)
          .join("")
        expect(read(splitAt(bytes(text), cuts))).toEqual(events.map((lines) => lines.join("\n")))
      },
    ),
  )
})

describe("real streams", () => {
  it("may end without an empty line", () => {
    expect(read([bytes('data: {"a":1}\n\ndata: [DONE]')])).toEqual(['{"a":1}', "[DONE]"])
  })

  it("may split CRLF between two reads", () => {
    expect(read([bytes("data: a\r"), bytes("\n\r"), bytes("\ndata: b\r\n\r\n")])).toEqual(["a", "b"])
  })

  it("have no event in text that is none", () => {
    expect(read([bytes("<html><body>502 Bad Gateway</body></html>")])).toEqual([])
  })
})

it("refuses an event without an end, before it takes much memory", () => {
  const stream = new EventStream(() => {})
  const chunk = bytes("x".repeat(2 ** 20))
  stream.read(bytes("data: "), 0)
  expect(() => {
    for (let i = 0; i < 8; i++) stream.read(chunk, 0)
  }).toThrow(RequestFailed)
})
