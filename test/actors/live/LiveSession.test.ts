// A live session: it transcribes once a window, at most one call at a time and always with the newest audio; the end of a session
// interrupts calls that it does not need. All ways a session ends. The engine is a function, and the test moves the clock.
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Result } from "effect"
import type { Transcribe } from "#actors/live/IncrementalTranscriber.ts"
import { nextWindow } from "#domain/audio/Listening.ts"
import type { TranscribeRequest } from "#engines/protocol/Engine.ts"
import {
  bytesOf,
  fileAnswer,
  liveSession,
  rateHz,
  samplesOf,
  transcriber,
} from "../../support/engines/LiveTranscriber.ts"

const speech = samplesOf(12, 5)
const seconds = (from: number, to: number) => bytesOf(speech.subarray(from * rateHz, to * rateHz))
/** Lets every fiber run until it waits. */
const settled = Effect.repeat(Effect.yieldNow, { times: 20 })

/** A transcriber whose calls wait until the test answers them. */
const gatedTranscriber = () => {
  const asked: Array<{ readonly request: TranscribeRequest; readonly answer: Effect.Effect<void> }> = []
  let running = 0
  let most = 0
  let cancelled = 0
  const inner = transcriber()
  const transcribe: Transcribe<never> = (request, onSegment, final) =>
    Effect.gen(function* () {
      const gate = yield* Deferred.make<void>()
      asked.push({ request, answer: Effect.asVoid(Deferred.succeed(gate, undefined)) })
      most = Math.max(most, ++running)
      yield* Deferred.await(gate)
      return yield* inner(request, onSegment, final)
    }).pipe(
      Effect.onInterrupt(() => Effect.sync(() => void cancelled++)),
      Effect.ensuring(Effect.sync(() => void running--)),
    )
  return { transcribe, asked, most: () => most, cancelled: () => cancelled }
}

describe("the window", () => {
  it("ends at multiples of its length, however late the previous one was", () => {
    const windows = { samples: 16_000, ahead: 0 }
    expect([0, 15_999, 16_000, 16_001, 53_000].map((total) => nextWindow(total, windows))).toEqual([
      16_000, 16_000, 32_000, 32_000, 64_000,
    ])
  })

  it("is due with the audio behind it that its caption needs", () => {
    const windows = { samples: 8_960, ahead: 1_280 }
    expect([0, 1_281, 10_239, 10_240, 19_199, 19_200].map((total) => nextWindow(total, windows))).toEqual([
      10_240, 10_240, 10_240, 19_200, 19_200, 28_160,
    ])
  })

  it.effect("is transcribed when a window of new audio has arrived, and not before", () =>
    Effect.gen(function* () {
      const { asked, transcribe } = gatedTranscriber()
      const { session } = liveSession(transcribe, { windowSeconds: 0.5 })
      yield* Effect.forkChild(session.run, { startImmediately: true })
      session.push(seconds(0, 0.4), 0)
      yield* settled
      expect(asked.length).toBe(0)
      session.push(seconds(0.4, 0.5), 0)
      yield* settled
      expect(asked.length).toBe(1)
      expect(asked[0]!.request.samples.length).toBe(rateHz / 2)
      yield* asked[0]!.answer
      yield* settled
      expect(session.hypothesis).toMatchObject({ audioMs: 500 })
      expect(asked.length).toBe(1)
    }),
  )

  it.effect("has one transcription at a time, with the newest audio", () =>
    Effect.gen(function* () {
      const { asked, most, transcribe } = gatedTranscriber()
      const { done, session } = liveSession(transcribe, { windowSeconds: 0.25 })
      yield* Effect.forkChild(session.run, { startImmediately: true })
      for (let at = 0; at < 1.5; at += 0.125) {
        session.push(seconds(at, at + 0.125), 0)
        yield* settled
      }
      expect(asked.length).toBe(1)
      yield* asked[0]!.answer
      yield* settled
      // Five windows have passed; the next call transcribes all their audio.
      expect(asked.length).toBe(2)
      expect(asked[1]!.request.samples.length).toBe(1.5 * rateHz)
      yield* asked[1]!.answer
      yield* settled
      expect(asked.length).toBe(2)
      expect(most()).toBe(1)
      expect(done()).toBe(2)
    }),
  )

  it.effect("uses the last hypothesis as a draft, but not for the final result", () =>
    Effect.gen(function* () {
      const requests: Array<TranscribeRequest> = []
      const inner = transcriber()
      const { session } = liveSession((request, onSegment, final) => {
        requests.push(request)
        return inner(request, onSegment, final)
      })
      const fiber = yield* Effect.forkChild(session.run, { startImmediately: true })
      for (const at of [0, 1]) {
        session.push(seconds(at, at + 1), 0)
        yield* settled
      }
      session.stop("stop")
      yield* Fiber.join(fiber)
      const [first, second, last] = requests
      expect(first!.draft).toBeUndefined()
      expect(second!.draft!.length).toBeGreaterThan(0)
      expect(last!.draft).toBeUndefined()
      expect(last!.samples.length).toBe(2 * rateHz)
    }),
  )
})

describe("the end", () => {
  it.effect("interrupts a running hypothesis, keeps closed pieces, and gives the text of the file", () =>
    Effect.gen(function* () {
      const { asked, cancelled, transcribe } = gatedTranscriber()
      const { session } = liveSession(transcribe, { windowSeconds: 3 })
      const fiber = yield* Effect.forkChild(session.run, { startImmediately: true })
      session.push(seconds(0, 3), 0)
      yield* settled
      // The first call closes a piece; the second is the open rest.
      yield* asked[0]!.answer
      yield* settled
      expect(asked.length).toBe(2)
      session.stop("stop")
      yield* settled
      expect(cancelled()).toBe(1)
      const closedAt = asked[1]!.request.samples.length
      expect(asked[2]!.request.samples.length).toBe(closedAt)
      for (let i = 2; ; i++) {
        yield* settled
        if (asked[i] === undefined) break
        yield* asked[i]!.answer
      }
      const { end, hypothesis } = yield* Fiber.join(fiber)
      expect(end).toBe("stop")
      expect(hypothesis.text).toBe(fileAnswer(speech.subarray(0, 3 * rateHz)).text)
    }),
  )

  it.effect("comes at the limit, and audio after it is ignored", () =>
    Effect.gen(function* () {
      const { session } = liveSession(transcriber(), { limitSamples: 5 * rateHz })
      const fiber = yield* Effect.forkChild(session.run, { startImmediately: true })
      session.push(seconds(0, 4), 0)
      session.push(seconds(4, 6), 0)
      session.push(seconds(6, 7), 0)
      const { end, hypothesis } = yield* Fiber.join(fiber)
      expect(end).toBe("limit")
      expect(session.samples).toBe(5 * rateHz)
      expect(hypothesis.text).toBe(fileAnswer(speech.subarray(0, 5 * rateHz)).text)
    }),
  )

  it.effect("comes once, with its first reason, and audio after it is ignored", () =>
    Effect.gen(function* () {
      const { session } = liveSession(transcriber())
      const fiber = yield* Effect.forkChild(session.run, { startImmediately: true })
      session.push(seconds(0, 1), 0)
      session.stop("stop")
      session.stop("drain")
      session.push(seconds(1, 2), 0)
      const { end, hypothesis } = yield* Fiber.join(fiber)
      expect(end).toBe("stop")
      expect(hypothesis.audioMs).toBe(1_000)
    }),
  )

  it.effect("of a session without audio is an empty text without an engine call", () =>
    Effect.gen(function* () {
      const { asked, transcribe } = gatedTranscriber()
      const { session } = liveSession(transcribe)
      const fiber = yield* Effect.forkChild(session.run, { startImmediately: true })
      session.push(new Uint8Array(0), 0)
      session.stop("stop")
      const { hypothesis } = yield* Fiber.join(fiber)
      expect(hypothesis).toEqual({ text: "", stableChars: 0, language: undefined, audioMs: 0 })
      expect(asked.length).toBe(0)
    }),
  )

  it.effect("comes after 60 s without a frame, counted from the last one", () =>
    Effect.gen(function* () {
      const { session } = liveSession(transcriber())
      const fiber = yield* Effect.forkChild(session.run, { startImmediately: true })
      session.endIfIdle(45_000)
      session.push(seconds(0, 1), 45_000)
      session.endIfIdle(104_999)
      expect(session.hasEnded).toBe(false)
      session.endIfIdle(105_000)
      expect((yield* Fiber.join(fiber)).end).toBe("idle")
    }),
  )
})

describe("an engine", () => {
  const failing = (fails: (call: number) => string | undefined): Transcribe<string> => {
    let calls = 0
    const inner = transcriber<string>()
    return (request, onSegment, final) => {
      const failure = fails(calls++)
      return failure === undefined ? inner(request, onSegment, final) : Effect.fail(failure)
    }
  }
  const isBusy = (error: string) => error === "busy"

  it.effect("at capacity drops one hypothesis and nothing else", () =>
    Effect.gen(function* () {
      const busyOnce = failing((call) => (call === 0 ? "busy" : undefined))
      const { done, session } = liveSession(busyOnce, { isBusy })
      const fiber = yield* Effect.forkChild(session.run, { startImmediately: true })
      session.push(seconds(0, 1), 0)
      yield* settled
      expect(done()).toBe(0)
      session.push(seconds(1, 2), 0)
      yield* settled
      expect(done()).toBe(1)
      session.stop("stop")
      expect((yield* Fiber.join(fiber)).hypothesis.text).toBe(fileAnswer(speech.subarray(0, 2 * rateHz)).text)
    }),
  )

  it.effect("at capacity for the final result fails the session", () =>
    Effect.gen(function* () {
      const { session } = liveSession(
        failing(() => "busy"),
        { isBusy },
      )
      const fiber = yield* Effect.forkChild(Effect.result(session.run), { startImmediately: true })
      session.push(seconds(0, 0.5), 0)
      session.stop("stop")
      expect(yield* Fiber.join(fiber)).toEqual(Result.fail("busy"))
    }),
  )

  it.effect("that fails ends the session at once", () =>
    Effect.gen(function* () {
      const { session } = liveSession(
        failing(() => "broken"),
        { isBusy },
      )
      const fiber = yield* Effect.forkChild(Effect.result(session.run), { startImmediately: true })
      session.push(seconds(0, 1), 0)
      expect(yield* Fiber.join(fiber)).toEqual(Result.fail("broken"))
    }),
  )
})
