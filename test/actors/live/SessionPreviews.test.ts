// What a live session does in a silence that may be the end of a turn: it transcribes ahead, uses that as the final result where it
// has heard enough of the silence, and drops it where speech goes on. The engine is a function.
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import * as fc from "fast-check"
import type { Transcribe } from "#actors/live/IncrementalTranscriber.ts"
import { firstPreviewMs, PreviewPlan, type PreviewTimes, unheardMs } from "#domain/audio/PreviewPlan.ts"
import {
  bytesOf,
  fileAnswer,
  liveSession,
  rateHz,
  samplesOf,
  transcriber,
} from "../../support/engines/LiveTranscriber.ts"

const speech = samplesOf(1.5, 5)
const silence = (ms: number) => bytesOf(new Int16Array((ms * rateHz) / 1000))
const settled = Effect.repeat(Effect.yieldNow, { times: 20 })
const joined = (...parts: ReadonlyArray<Int16Array>) => Int16Array.from(parts.flatMap((part) => [...part]))

/** Counts the calls for a final result, the first of which waits for the test where `gated`. */
const counting = (gated = false) => {
  const inner = transcriber()
  const finals: Array<{ readonly samples: number; readonly open: () => void }> = []
  let cancelled = 0
  const transcribe: Transcribe<never> = (request, onSegment, call) => {
    if (call !== "final") return inner(request, onSegment, call)
    const gate = Deferred.makeUnsafe<void>()
    finals.push({
      samples: request.samples.length,
      open: () => Deferred.doneUnsafe(gate, Effect.void),
    })
    const wait = gated && finals.length === 1 ? Deferred.await(gate) : Effect.void
    return Effect.andThen(wait, inner(request, onSegment, call)).pipe(
      Effect.onInterrupt(() => Effect.sync(() => void cancelled++)),
    )
  }
  return { transcribe, finals, cancelled: () => cancelled }
}

const begun = (transcribe: Transcribe<never>) =>
  Effect.gen(function* () {
    // No captions: what is counted is the calls for a final result.
    const { session } = liveSession(transcribe, { windowSeconds: 100 })
    const run = yield* Effect.forkChild(session.run, { startImmediately: true })
    const previews: Array<string | undefined> = []
    yield* Effect.forkChild(
      Effect.forever(Effect.map(session.nextPreview, (preview) => previews.push(preview?.text))),
      { startImmediately: true },
    )
    yield* settled
    session.push(bytesOf(speech), 0)
    return { session, run, previews }
  })

describe("the plan of previews", () => {
  it("makes one early in a silence, and another shortly before its end, as long before as the first one took", () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 20, max: 3_000 }),
        fc.integer({ min: 0, max: 2_000 }),
        (endsAtMs, tookMs) => {
          let plan = new PreviewPlan()
          const madeAt: Array<number> = []
          let busyUntilMs = 0
          for (let quietMs = 20; quietMs < endsAtMs; quietMs += 20) {
            if (quietMs < busyUntilMs || !plan.isDue({ quietMs, endsAtMs })) continue
            madeAt.push(quietMs)
            busyUntilMs = quietMs + tookMs
            plan = plan.made({ quietMs, tookMs })
          }
          expect(madeAt.length).toBeLessThanOrEqual(2)
          if (endsAtMs > firstPreviewMs + 40) expect([80, 100]).toContain(madeAt[0])
          const last = madeAt.at(-1)
          // One that takes no longer than half of the silence is done at its end but for a frame, and has heard enough of it.
          if (last !== undefined && tookMs * 4 < endsAtMs - 200) {
            expect(last + tookMs).toBeLessThanOrEqual(endsAtMs + 20)
            expect(endsAtMs - last).toBeLessThanOrEqual(unheardMs(endsAtMs))
          }
        },
      ),
    )
  })
})

describe("the plan of previews where it is known what they take", () => {
  const firstOf = (endsAtMs: number, lately: PreviewTimes) => {
    const plan = new PreviewPlan()
    const frames = Array.from({ length: Math.ceil(endsAtMs / 10) + 1 }, (_, at) => at * 10)
    return frames.find((quietMs) => plan.isDue({ quietMs, endsAtMs }, lately))
  }

  it("makes the first one late where the answer is ready soon, with twice the time that is needed", () => {
    const silence = fc.integer({ min: 300, max: 3_000 })
    const took = fc.integer({ min: 1, max: 700 })
    fc.assert(
      fc.property(silence, took, took, (endsAtMs, previewMs, answerMs) => {
        fc.pre(firstPreviewMs + previewMs + 30 < endsAtMs)
        const firstMs = firstOf(endsAtMs, { previewMs, answerMs })!
        const neededMs = 2 * (previewMs + answerMs)
        expect(firstMs).toBeGreaterThanOrEqual(firstPreviewMs)
        if (firstMs > firstPreviewMs) expect(endsAtMs - firstMs).toBeGreaterThanOrEqual(neededMs)
        // Not earlier than that time needs, but for a frame and what is spared.
        if (endsAtMs - firstPreviewMs > neededMs + 80)
          expect(endsAtMs - firstMs).toBeLessThanOrEqual(neededMs + 70)
      }),
    )
  })

  it("makes the only one when it has heard enough, where it takes longer than the silence lasts", () => {
    expect(firstOf(500, { previewMs: 900, answerMs: 1_000 })).toBe(250)
    expect(firstOf(500, { previewMs: 40 })).toBe(firstPreviewMs)
    expect(firstOf(500, {})).toBe(firstPreviewMs)
  })

  it("waits a frame where the first one then is the only one", () => {
    expect(firstOf(200, {})).toBe(100)
    expect(firstOf(200, { previewMs: 900 })).toBe(100)
  })
})

describe("a silence within a session", () => {
  it.effect("that lasts: the final result is the preview that heard nearly all of it", () =>
    Effect.gen(function* () {
      const { finals, transcribe } = counting()
      const { previews, run, session } = yield* begun(transcribe)
      session.push(silence(80), 0)
      session.paused({ quietMs: 80, endsAtMs: 160 })
      yield* settled
      expect(previews).toHaveLength(1)
      session.push(silence(80), 0)
      expect(session.leaveOutUnheard()).toBe(80 * 16)
      session.stop("stop")
      const { hypothesis } = yield* Fiber.join(run)
      expect(finals).toHaveLength(1)
      expect(hypothesis.text).toBe(previews[0])
      expect(hypothesis.audioMs).toBe(1_580)
      expect(hypothesis.text).toBe(fileAnswer(joined(speech, new Int16Array(80 * 16))).text)
    }),
  )

  it.effect("that is over: what was foreseen is dropped, and a preview that is being made ends", () =>
    Effect.gen(function* () {
      const { cancelled, finals, transcribe } = counting(true)
      const { previews, run, session } = yield* begun(transcribe)
      session.push(silence(80), 0)
      session.paused({ quietMs: 80, endsAtMs: 500 })
      yield* settled
      expect(finals).toHaveLength(1)
      session.resumed()
      yield* settled
      expect(cancelled()).toBe(1)
      expect(previews).toEqual([])
      session.push(bytesOf(speech), 0)
      session.stop("stop")
      const { hypothesis } = yield* Fiber.join(run)
      expect(finals[1]!.samples).toBe(2 * speech.length + 80 * 16)
      expect(hypothesis.text).toBe(fileAnswer(joined(speech, new Int16Array(80 * 16), speech)).text)
    }),
  )

  it.effect(
    "that ends the turn sooner than was said first: what has not heard half of it is not the final result",
    () =>
      Effect.gen(function* () {
        const ends = function* (endsAtMs: number) {
          const { finals, transcribe } = counting()
          const { run, session } = yield* begun(transcribe)
          session.push(silence(80), 0)
          session.paused({ quietMs: 80, endsAtMs: 600 })
          yield* settled
          session.push(silence(160), 0)
          // A second preview is due only where the first one is not enough.
          session.paused({ quietMs: 240, endsAtMs })
          session.leaveOutUnheard()
          session.stop("stop")
          yield* Fiber.join(run)
          return finals.length
        }
        expect(yield* ends(240)).toBe(2)
        expect(yield* ends(600)).toBe(1)
      }),
  )

  it.effect("whose preview comes too late for the end: all is transcribed once more", () =>
    Effect.gen(function* () {
      const { cancelled, finals, transcribe } = counting(true)
      const { run, session } = yield* begun(transcribe)
      session.push(silence(80), 0)
      session.paused({ quietMs: 80, endsAtMs: 500 })
      yield* settled
      session.push(silence(420), 0)
      expect(session.leaveOutUnheard()).toBe(0)
      session.stop("stop")
      yield* settled
      expect(cancelled()).toBe(1)
      expect(finals.map(({ samples }) => samples)).toEqual([
        speech.length + 80 * 16,
        speech.length + 500 * 16,
      ])
      yield* Fiber.join(run)
    }),
  )

  it.effect("whose preview is nearly done at the end: it is waited for", () =>
    Effect.gen(function* () {
      const { finals, transcribe } = counting(true)
      const { run, session } = yield* begun(transcribe)
      session.push(silence(80), 0)
      session.paused({ quietMs: 80, endsAtMs: 160 })
      yield* settled
      session.push(silence(80), 0)
      session.leaveOutUnheard()
      session.stop("stop")
      yield* settled
      finals[0]!.open()
      yield* Fiber.join(run)
      expect(finals).toHaveLength(1)
    }),
  )

  it.effect("that a client's commit ends: all of its audio is transcribed", () =>
    Effect.gen(function* () {
      const { finals, transcribe } = counting()
      const { run, session } = yield* begun(transcribe)
      session.push(silence(80), 0)
      session.paused({ quietMs: 80, endsAtMs: 160 })
      yield* settled
      session.push(silence(40), 0)
      session.stop("stop")
      const { hypothesis } = yield* Fiber.join(run)
      expect(finals[1]!.samples).toBe(speech.length + 120 * 16)
      expect(hypothesis.audioMs).toBe(1_620)
    }),
  )

  it.effect("at random, in any order: the text is that of exactly the audio that is left", () =>
    Effect.gen(function* () {
      const step = fc.constantFrom("speech", "silence", "settle")
      const orders = fc.sample(fc.array(step, { maxLength: 14 }), { numRuns: 60, seed: 20_261_127 })
      for (const order of orders) {
        const { run, session } = yield* begun(transcriber())
        let audio: Int16Array = speech
        let quietMs = 0
        for (const what of order) {
          if (what === "settle") {
            yield* settled
            continue
          }
          const next = what === "speech" ? samplesOf(0.3, 9) : new Int16Array(60 * 16)
          audio = joined(audio, next)
          session.push(bytesOf(next), 0)
          if (what === "speech") {
            quietMs = 0
            session.resumed()
          } else {
            quietMs += 60
            session.paused({ quietMs, endsAtMs: 160 })
          }
        }
        const leftOut = session.leaveOutUnheard()
        // Only silence, and no more than the final result need not hear.
        expect(leftOut).toBeLessThanOrEqual(Math.min(quietMs, unheardMs(160)) * 16)
        session.stop("stop")
        const { hypothesis } = yield* Fiber.join(run)
        expect(session.samples).toBe(audio.length - leftOut)
        expect(hypothesis.text).toBe(fileAnswer(audio.subarray(0, audio.length - leftOut)).text)
      }
    }),
  )
})
