// For any text, cut into any pieces, in every format, and failing anywhere: what a client receives is
// a beginning of what it would have received, and an end mark is there exactly when the end is.
import fc from "fast-check"
import { afterAll, beforeAll, expect, it } from "vitest"
import { decodeOggOpus, parseOgg } from "../support/audio/OggPages.ts"
import { headerOf, RawConnection, type RawResponse } from "../support/clients/RawHttp.ts"
import { inLong, isLong } from "../support/groups/Runs.ts"
import {
  fakeVoice,
  presetModel,
  scriptSamples,
  speak,
  speechRequestBytes,
  spokenScript,
} from "../support/nodes/SpeechNode.ts"
import { startNode, type TestNode, untilIdle } from "../support/nodes/TestNode.ts"

let node: TestNode
beforeAll(async () => {
  node = await startNode({ models: isLong ? [fakeVoice, presetModel] : [fakeVoice] })
  if (isLong) await speak(node, { model: "tts-82m", voice: "af_bella", input: "Hi." })
  await speak(node, { model: "fake-voice", voice: "fake", input: "Hi." })
})
afterAll(() => node.stop())

const scripts = fc.record({
  pieces: fc.integer({ min: 1, max: 6 }),
  // Shorter than an Opus frame, longer than one write to the socket, and all between; at four times the speed at
  // least one sample is left of it.
  samples: fc.array(fc.oneof(fc.integer({ min: 4, max: 600 }), fc.integer({ min: 4, max: 20_000 })), {
    minLength: 1,
    maxLength: 4,
  }),
  pieceMs: fc.constantFrom(0, 0, 1, 3),
  seed: fc.integer({ min: 0, max: 1_000 }),
})
const streamed = fc.record({
  response_format: fc.constantFrom("pcm", "opus"),
  speed: fc.constantFrom(0.25, 0.7, 1, 1.37, 4),
})
type Streamed = typeof streamed extends fc.Arbitrary<infer A> ? A : never

const bodyOf = (steps: object, more: object) => ({
  model: "fake-voice",
  voice: "fake",
  input: spokenScript({ ...steps }),
  ...more,
})
const stream = (steps: object, more: Streamed) => speak(node, bodyOf(steps, { ...more, stream: true }))
const isPrefix = (part: Buffer, whole: Buffer): boolean => whole.subarray(0, part.length).equals(part)

/** Checks a body that ended too early. */
const expectBeginning = (format: string, received: Buffer, whole: Buffer): void => {
  expect(received.length).toBeLessThan(whole.length + (format === "pcm" ? 1 : 0))
  expect(isPrefix(received, whole)).toBe(true)
  if (format === "opus") {
    const { pages } = parseOgg(received)
    expect(pages.some((page) => page.endOfStream)).toBe(false)
  }
}
const expectWhole = (reply: RawResponse): void => {
  expect([reply.status, reply.complete]).toEqual([200, true])
  expect(headerOf(reply, "transfer-encoding")).toBe("chunked")
}

it("a stream that succeeds is the batch reply, in one Ogg stream with its end or as samples", async () => {
  await fc.assert(
    fc.asyncProperty(scripts, streamed, async (steps, more) => {
      const reply = await stream(steps, more)
      expectWhole(reply)
      const pcm = scriptSamples(steps, { speed: more.speed })
      const batch = await speak(node, bodyOf(steps, { speed: more.speed }))
      expect(batch.body.equals(pcm)).toBe(true)
      if (more.response_format === "pcm") {
        expect(reply.body.equals(pcm)).toBe(true)
        return
      }
      const { pages, restBytes } = parseOgg(reply.body)
      expect(restBytes).toBe(0)
      expect(pages.map((page) => page.endOfStream)).toEqual(pages.map((_, i) => i === pages.length - 1))
      expect(decodeOggOpus(reply.body).length).toBe(pcm.length)
    }),
    { numRuns: 40 },
  )
})

it(
  "a stream whose engine fails is a beginning of it, without an end and without a word",
  inLong,
  async () => {
    await fc.assert(
      fc.asyncProperty(scripts, streamed, fc.integer({ min: 0, max: 6 }), async (steps, more, at) => {
        const failAt = Math.min(at, steps.pieces)
        const [whole, reply] = await Promise.all([stream(steps, more), stream({ ...steps, failAt }, more)])
        expectWhole(whole)
        if (failAt === 0) {
          expect([reply.status, reply.body.toString("utf8")]).toEqual([502, '{"detail":"TTS backend error"}'])
          return
        }
        expect([reply.status, reply.complete]).toEqual([200, false])
        expectBeginning(more.response_format, reply.body, whole.body)
        // All that was made before the failure came through.
        if (more.response_format === "pcm") {
          const made = scriptSamples(steps, { speed: more.speed, pieces: failAt })
          expect(reply.body.equals(made)).toBe(true)
        }
      }),
      { numRuns: 60 },
    )
  },
)

it("a batch reply in a container whose engine fails is a refusal and nothing else", async () => {
  const formats = fc.constantFrom("wav", "mp3")
  await fc.assert(
    fc.asyncProperty(scripts, formats, async (steps, response_format) => {
      const failAt = steps.pieces
      const reply = await speak(node, bodyOf({ ...steps, failAt }, { response_format }))
      expect([reply.status, reply.body.toString("utf8")]).toEqual([502, '{"detail":"TTS backend error"}'])
    }),
    { numRuns: 20 },
  )
})

it(
  "a batch reply of pcm whose engine fails is what was made before, without an end and without a word",
  inLong,
  async () => {
    await fc.assert(
      fc.asyncProperty(scripts, fc.integer({ min: 0, max: 6 }), async (steps, at) => {
        const failAt = Math.min(at, steps.pieces)
        const reply = await speak(node, bodyOf({ ...steps, failAt }, { response_format: "pcm" }))
        if (failAt === 0) {
          expect([reply.status, reply.body.toString("utf8")]).toEqual([502, '{"detail":"TTS backend error"}'])
          return
        }
        expect([reply.status, reply.complete]).toEqual([200, false])
        expect(reply.body.equals(scriptSamples(steps, { pieces: failAt }))).toBe(true)
      }),
      { numRuns: 40 },
    )
  },
)

it("a client that leaves has received a beginning", async () => {
  const leaving = fc.record({
    steps: scripts,
    more: streamed,
    afterBytes: fc.integer({ min: 1, max: 30_000 }),
  })
  await fc.assert(
    fc.asyncProperty(leaving, async ({ afterBytes, more, steps }) => {
      const whole = await stream(steps, more)
      const connection = await RawConnection.open(node.port)
      await connection.send(speechRequestBytes(node, bodyOf(steps, { ...more, stream: true })))
      await connection.bytes(Math.min(afterBytes, whole.body.length))
      const received = connection.unread
      connection.destroy()
      const body = bodySoFar(received)
      expect(isPrefix(body, whole.body)).toBe(true)
      // The next one is not refused because of it.
      await untilIdle(node)
    }),
    { numRuns: 20 },
  )
  await untilIdle(node)
})

/** The body inside the bytes of a chunked response that need not be all of it. */
const bodySoFar = (received: Buffer): Buffer => {
  const parts: Array<Buffer> = []
  let at = received.indexOf("\r\n\r\n") + 4
  for (;;) {
    const lineEnd = received.indexOf("\r\n", at)
    if (lineEnd < 0) break
    const size = Number.parseInt(received.toString("latin1", at, lineEnd), 16)
    if (!(size > 0)) break
    parts.push(received.subarray(lineEnd + 2, lineEnd + 2 + size))
    at = lineEnd + 2 + size + 2
    if (at > received.length) break
  }
  return Buffer.concat(parts)
}

/** A reply, once the machine is quick enough for it: a stream that would run dry is refused for a while. */
const spoken = async (body: object): Promise<RawResponse> => {
  for (;;) {
    const reply = await speak(node, body)
    if (reply.status !== 503 || headerOf(reply, "retry-after") === undefined) return reply
  }
}

it("any text is spoken the same in a stream and in a batch, or refused the same", inLong, async () => {
  const texts = fc.oneof(
    fc.string({ unit: "grapheme", maxLength: 60 }),
    fc.string({ unit: "binary", maxLength: 60 }),
    fc
      .array(
        fc.constantFrom(
          "Well, ",
          "two (2) ",
          "or… ",
          "£3.50; ",
          "no! ",
          "Dr. Who? ",
          "x² — ",
          "\n\n",
          "**so** ",
        ),
        {
          maxLength: 30,
        },
      )
      .map((parts) => parts.join("")),
  )
  const voices = fc.constantFrom(...(presetModel.speech.voices as ReadonlyArray<string>))
  await fc.assert(
    fc.asyncProperty(texts, voices, fc.constantFrom(0.5, 1, 2), async (input, voice, speed) => {
      const body = { model: "tts-82m", input, voice, speed }
      const [batch, whole] = await Promise.all([spoken(body), spoken({ ...body, stream: true })])
      expect([200, 400, 502]).toContain(batch.status)
      expect(whole.status).toBe(batch.status)
      expect([batch.complete, whole.complete]).toEqual([true, true])
      expect(whole.body.equals(batch.body)).toBe(true)
      if (batch.status === 200) expect(batch.body.length).toBeGreaterThan(0)
    }),
    { numRuns: 40 },
  )
})
