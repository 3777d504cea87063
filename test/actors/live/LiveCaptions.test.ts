// Captions that are separate requests: they transcribe bounded parts of the newest audio, while pieces are closed as without
// captions. The final result equals that of the file, whatever the captions were.
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import fc from "fast-check"
import type { LiveCall, Transcribe } from "#actors/live/IncrementalTranscriber.ts"
import type { Captioner } from "#actors/live/LiveCaptions.ts"
import type { TranscribeRequest } from "#engines/protocol/Engine.ts"
import {
  bytesOf,
  captioner,
  fileAnswer,
  liveSession,
  rateHz,
  samplesOf,
  transcriber,
} from "../../support/engines/LiveTranscriber.ts"

const settled = Effect.repeat(Effect.yieldNow, { times: 30 })
const speech = samplesOf(12, 5)
const seconds = (from: number, to: number) => bytesOf(speech.subarray(from * rateHz, to * rateHz))

/** Records the calls of captions and pieces, and answers each when `gate` allows it. */
const noted = (isApart: boolean, gate: (call: LiveCall) => Effect.Effect<void> = () => Effect.void) => {
  const asked: Array<{ readonly call: LiveCall; readonly request: TranscribeRequest }> = []
  const transcribe: Transcribe<never> = (request, onSegment, call) =>
    Effect.suspend(() => {
      asked.push({ call, request })
      return Effect.andThen(gate(call), transcriber()(request, onSegment, call))
    })
  const inner = captioner(3, isApart)
  const captions: Captioner<never> = {
    ...inner,
    transcribe: (request, onSegment) =>
      Effect.andThen(
        gate("caption"),
        inner.transcribe(() => {
          const made = request()
          asked.push({ call: "caption", request: made })
          return made
        }, onSegment),
      ),
  }
  return { asked, transcribe, captions }
}

describe("a session with captions", () => {
  it.each([false, true])(
    "ends in the file's text, whatever its captions were; from another engine: %s",
    async (isApart) => {
      let captioned = 0
      let closed = 0
      const sessions = fc.record({
        length: fc.double({ min: 0, max: 14, noNaN: true }),
        seed: fc.integer({ min: 1, max: 1_000_000 }),
        windowSeconds: fc.constantFrom(0.25, 1, 2),
        frame: fc.integer({ min: 1_600, max: 40_000 }),
      })
      const check = async ({
        frame,
        length,
        seed,
        windowSeconds,
      }: {
        readonly frame: number
        readonly length: number
        readonly seed: number
        readonly windowSeconds: number
      }) => {
        const samples = samplesOf(length, seed)
        const { asked, captions, transcribe } = noted(isApart)
        const { session } = liveSession(transcribe, { captions, windowSeconds })
        const stable: Array<string> = []
        const word = await Effect.runPromise(
          Effect.gen(function* () {
            const fiber = yield* Effect.forkChild(session.run, { startImmediately: true })
            for (let at = 0; at < samples.length; at += frame) {
              session.push(bytesOf(samples.subarray(at, at + frame)), 0)
              yield* settled
              const { stableChars, text } = session.hypothesis
              stable.push([...text].slice(0, stableChars).join(""))
            }
            session.stop("stop")
            return yield* Fiber.join(fiber)
          }),
        )
        expect(word.hypothesis.text).toBe(fileAnswer(samples).text)
        // Text that was once stable stays the beginning of the text.
        for (const text of stable) expect(word.hypothesis.text.startsWith(text)).toBe(true)
        for (const { call, request } of asked) {
          expect(request.caption === true).toBe(call === "caption")
          if (call !== "caption") continue
          expect(request.samples.length).toBeLessThanOrEqual(3 * rateHz)
          captioned++
        }
        closed += asked.filter(({ call }) => call === "closing").length
      }
      await fc.assert(fc.asyncProperty(sessions, check), {
        numRuns: 40,
        endOnFailure: true,
        seed: 20_261_122,
      })
      expect(captioned).toBeGreaterThan(60)
      expect(closed).toBeGreaterThan(20)
    },
  )

  it.effect("transcribes the newest audio at the time when its call begins", () =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      const { captions, transcribe } = noted(false, (call) =>
        call === "caption" ? Deferred.await(gate) : Effect.void,
      )
      const { session } = liveSession(transcribe, { captions })
      yield* Effect.forkChild(session.run, { startImmediately: true })
      session.push(seconds(0, 1), 0)
      yield* settled
      session.push(seconds(1, 1.5), 0)
      yield* Deferred.succeed(gate, undefined)
      yield* settled
      expect(session.hypothesis.audioMs).toBe(1_500)
    }),
  )

  it.effect("closes a full piece before the next caption where one engine does both", () =>
    Effect.gen(function* () {
      const { asked, captions, transcribe } = noted(false)
      const { session } = liveSession(transcribe, { captions })
      yield* Effect.forkChild(session.run, { startImmediately: true })
      for (let at = 0; at < 4; at++) {
        session.push(seconds(at, at + 1), 0)
        yield* settled
      }
      const closing = asked.findIndex(({ call }) => call === "closing")
      expect(asked.slice(0, closing).map(({ call }) => call)).toEqual(["caption", "caption"])
      // The next caption begins where the closed piece ends.
      const { call, request } = asked[closing + 1]!
      expect(call).toBe("caption")
      expect(request.samples.length).toBeLessThan(3 * rateHz)
    }),
  )

  it.effect("has captions from another engine while a piece is closed, and closes no piece twice", () =>
    Effect.gen(function* () {
      const closing = yield* Deferred.make<void>()
      const { asked, captions, transcribe } = noted(true, (call) =>
        call === "closing" ? Deferred.await(closing) : Effect.void,
      )
      const { session } = liveSession(transcribe, { captions })
      const fiber = yield* Effect.forkChild(session.run, { startImmediately: true })
      for (let at = 0; at < 6; at++) {
        session.push(seconds(at, at + 1), 0)
        yield* settled
      }
      const count = (kind: LiveCall) => asked.filter(({ call }) => call === kind).length
      expect(count("closing")).toBe(1)
      // One caption each second, and one for each full part.
      expect(session.hypothesis).toMatchObject({ audioMs: 6_000, stableChars: 0 })
      expect(count("caption")).toBeGreaterThanOrEqual(6)
      session.stop("stop")
      yield* settled
      expect(count("final")).toBe(0)
      yield* Deferred.succeed(closing, undefined)
      const { hypothesis } = yield* Fiber.join(fiber)
      expect(hypothesis.text).toBe(fileAnswer(speech.subarray(0, 6 * rateHz)).text)
      const starts = asked.filter(({ call }) => call === "closing").map(({ request }) => request.stream)
      expect(new Set(starts).size).toBe(starts.length)
    }),
  )

  it.effect("interrupts a caption at the end, and begins the final result at once", () =>
    Effect.gen(function* () {
      const { asked, captions, transcribe } = noted(false, (call) =>
        call === "caption" ? Effect.never : Effect.void,
      )
      const { session } = liveSession(transcribe, { captions })
      const fiber = yield* Effect.forkChild(session.run, { startImmediately: true })
      session.push(seconds(0, 1.2), 0)
      yield* settled
      session.stop("stop")
      const { hypothesis } = yield* Fiber.join(fiber)
      expect(asked.every(({ call }) => call === "final")).toBe(true)
      expect(hypothesis.text).toBe(fileAnswer(speech.subarray(0, 1.2 * rateHz)).text)
    }),
  )
})
