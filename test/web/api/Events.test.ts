// The playground's reader of event streams, against events that are written in every allowed way and cut anywhere.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { EventParser, jsonEvents, StreamCut } from "../../../src/web/api/Events.js"

const lineEnds = ["\n", "\r\n", "\r"]
const event = fc.record({
  name: fc.option(fc.stringMatching(/^[a-z.]{1,8}$/), { nil: undefined }),
  // A data line may hold anything but line ends.
  data: fc.array(
    fc.string({ unit: "binary" }).map((text) => text.replaceAll(/[\r\n]/g, " ")),
    { minLength: 1, maxLength: 3 },
  ),
  comment: fc.boolean(),
})

/** The pieces of a text that is cut at the given places. */
const cut = (text: string, places: ReadonlyArray<number>): ReadonlyArray<string> => {
  const at = [0, ...places.map((place) => place % (text.length + 1)).toSorted((a, b) => a - b), text.length]
  return at.slice(1).map((end, i) => text.slice(at[i], end))
}

describe("EventParser", () => {
  it("finds the same events however the text is cut, and with every line end", () => {
    fc.assert(
      fc.property(
        fc.array(event, { maxLength: 5 }),
        fc.constantFrom(...lineEnds),
        fc.array(fc.nat(), { maxLength: 8 }),
        (events, end, places) => {
          const text = events
            .map(({ comment, data, name }) =>
              [
                ...(comment ? [": keep-alive"] : []),
                ...(name === undefined ? [] : [`event: ${name}`]),
                ...data.map((line) => `data: ${line}`),
                "",
                "",
              ].join(end),
            )
            .join("")
          const parser = new EventParser()
          const found = cut(text, places).flatMap((piece) => parser.push(piece))
          expect(found).toEqual(
            events.map(({ data, name }) => ({ event: name ?? "message", data: data.join("\n") })),
          )
        },
      ),
    )
  })

  it("takes a value without a space, ignores fields that it does not know and events without data", () => {
    const parser = new EventParser()
    expect(parser.push("data:a\nid: 7\nretry: 3\ndata\n\nevent: empty\n\n")).toEqual([
      { event: "message", data: "a\n" },
    ])
  })
})

const streamOf = (bytes: Uint8Array, size: number): ReadableStream<Uint8Array> => {
  let at = 0
  return new ReadableStream({
    pull: (controller) => {
      if (at >= bytes.length) return controller.close()
      controller.enqueue(bytes.slice(at, at + size))
      at += size
    },
  })
}
const read = async (text: string, size: number) => {
  const events: Array<unknown> = []
  for await (const one of jsonEvents(streamOf(new TextEncoder().encode(text), size))) events.push(one)
  return events
}

describe("jsonEvents", () => {
  it("reads objects until [DONE], whatever bytes come together", async () => {
    const text = 'data: {"a":"ä🎈"}\n\ndata: {"b":2}\n\ndata: [DONE]\n\n'
    for (const size of [1, 2, 3, 7, 1000]) expect(await read(text, size)).toEqual([{ a: "ä🎈" }, { b: 2 }])
  })

  it("fails where the stream ends without [DONE]", async () => {
    await expect(read('data: {"a":1}\n\n', 4)).rejects.toBeInstanceOf(StreamCut)
  })
})
