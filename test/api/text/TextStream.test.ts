// The text stream's framing against a strict reader: any model output is read back unchanged.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { doneEvent, event, streamReply, TextFrame } from "#api/text/TextStream.ts"
import { sinkBodyOf } from "#http/SinkBody.ts"
import { parseEventStream } from "../../support/clients/EventStream.ts"

/** Texts with all characters that can break an event stream. */
const hostile = fc.string({
  unit: fc.oneof(
    fc.string({ unit: "binary", minLength: 1, maxLength: 1 }),
    fc.constantFrom(
      "\r",
      "\n",
      "\r\n",
      "\0",
      "\u2028",
      "\u2029",
      "\ud800",
      "\udfff",
      "data: ",
      "data:",
      ":",
      "[DONE]",
      "\ufeff",
      "id: 1\n",
      "\n\n",
    ),
  ),
  maxLength: 40,
})

const frame = new TextFrame((content) => ({
  id: "x",
  choices: [{ index: 0, delta: { content }, finish_reason: null }],
}))

const contentOf = (data: string): string => JSON.parse(data).choices[0].delta.content

it("reads back every text exactly, one event a text", () => {
  fc.assert(
    fc.property(fc.array(hostile, { maxLength: 8 }), (texts) => {
      const events = parseEventStream(texts.map((text) => frame.of(text)).join("") + doneEvent)
      expect(events.at(-1)).toBe("[DONE]")
      // A lone surrogate has no UTF-8 form; JSON carries it as an escape, so even that survives.
      expect(events.slice(0, -1).map(contentOf)).toEqual(texts)
    }),
    { numRuns: 500 },
  )
})

it("reads the same events however the bytes are cut", () => {
  fc.assert(
    fc.property(
      fc.array(hostile, { minLength: 1, maxLength: 5 }),
      fc.infiniteStream(fc.integer({ min: 1, max: 9 })),
      (texts, cuts) => {
        const bytes = Buffer.from(texts.map((text) => frame.of(text)).join("") + doneEvent)
        const decoder = new TextDecoder()
        let text = ""
        for (let at = 0; at < bytes.length; ) {
          const length = cuts.next().value as number
          text += decoder.decode(bytes.subarray(at, at + length), { stream: true })
          at += length
        }
        expect(parseEventStream(text)).toEqual(parseEventStream(bytes.toString()))
      },
    ),
  )
})

it("frames a text as the whole object would be serialised", () => {
  fc.assert(
    fc.property(hostile, (content) => {
      const whole = { id: "x", choices: [{ index: 0, delta: { content }, finish_reason: null }] }
      expect(frame.of(content)).toBe(event(whole))
    }),
  )
})

it.effect("writes events of any length whole, and never far ahead of a slow reader", () =>
  Effect.gen(function* () {
    const long = event("é\u{1f600}".repeat(100_000))
    const frames = {
      opening: long,
      first: frame,
      next: frame,
      detailed: () => "",
      last: () => long,
      closing: "",
    }
    let paused = 0
    const reply = streamReply(
      {
        started: { promptTokens: 1, cachedTokens: 0 },
        read: (reader) => reader.take({ text: "a", completionTokens: 1 }),
        flow: { pause: () => void paused++, resume: () => void paused-- },
        end: Effect.succeed({ finishReason: "stop", promptTokens: 1, completionTokens: 1 }),
      },
      frames,
    )
    const received: Array<Uint8Array> = []
    let waiting = 0
    let most = 0
    let drained = () => {}
    const sink = {
      closed: () => false,
      onDrain: (listener: () => void) => {
        drained = listener
      },
      // Takes a piece at once, and reads what waits a tick later.
      write: (chunk: string | Uint8Array) => {
        const bytes = Buffer.from(chunk)
        received.push(bytes)
        waiting += bytes.length
        most = Math.max(most, waiting)
        if (waiting === bytes.length) {
          setImmediate(() => {
            waiting = 0
            drained()
          })
        }
        return waiting < 40_000
      },
    }
    yield* sinkBodyOf((reply.body as { readonly body: unknown }).body)!(sink)
    expect(Buffer.concat(received).toString()).toBe(long + frame.of("a") + long)
    expect(most).toBeLessThan(64_000)
    yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)))
    expect(paused).toBe(0)
  }),
)
