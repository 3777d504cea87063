// The judgement of silences by words, sound and a language model's word, in virtual time: the model is asked about a text once and one
// text at a time, its word counts only while the silence lasts, and where it has none in time the score of words and sound stands.
import { expect, it } from "@effect/vitest"
import { Effect, type Fiber } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { describe } from "vitest"
import { SemanticEnds } from "#api/conversation/SemanticEnds.ts"
import { completenessWeights } from "#audio/SpeechWeights.ts"
import { completeness } from "#domain/activity/Completeness.ts"
import { prosodyValues } from "#domain/activity/Prosody.ts"
import { semanticSilenceMs } from "#domain/activity/SemanticSilence.ts"
import type { Item } from "#domain/conversation/Items.ts"
import { defaultSettings, withChange } from "#domain/conversation/Settings.ts"
import type { MessageEnd, NoMessageEnd } from "#engines/protocol/Text.ts"
import { Random } from "#harness/random/Random.ts"

type Answer = MessageEnd | NoMessageEnd | "failed"

const complete = "I would like a cup of coffee please"
const incomplete = "I would like a cup of"

const scoreWith = (sound: Float32Array, text: string): number =>
  completeness(completenessWeights, text, sound)!

/** Of an end at which the words decide: far enough from 0.5 to end the turn soon or late, near enough for the model's word. */
const sound = (() => {
  const random = new Random(1, 0)
  for (let tries = 0; tries < 100_000; tries++) {
    const values = Float32Array.from({ length: prosodyValues }, () => 4 * (random.next() / 2 ** 32) - 2)
    const [soon, late] = [scoreWith(values, complete), scoreWith(values, incomplete)]
    if (soon > 0.6 && soon < 0.75 && late > 0.25 && late < 0.4) return values
  }
  throw new Error("no sound is found at which the words decide")
})()

const byScore = (text: string): number => semanticSilenceMs("auto", scoreWith(sound, text))

/** The end behind the last word has this probability, behind the words before it one of a thousandth. */
const says = (probability: number): MessageEnd => {
  const stops = [0.001, 0.001, 0.001, probability].map(Math.log)
  return { ends: stops, stops }
}

const picture: Item = {
  id: "item_picture",
  object: "realtime.item",
  type: "message",
  status: "completed",
  role: "user",
  content: [{ type: "input_image", image_url: "data:image/png;base64,AAAA" }],
}

interface Behaviour {
  readonly turns?: object | null
  readonly isJudged?: boolean
  readonly items?: ReadonlyArray<Item>
  /** Milliseconds that the silence has left whenever a transcript comes. */
  readonly leftMs?: number
  /** Answers of the model in their order, the last one again and again, and what each takes. */
  readonly answers?: ReadonlyArray<Answer>
  readonly tookMs?: number
}

const make = Effect.fnUntraced(function* ({
  answers = [says(1)],
  isJudged = false,
  items = [],
  leftMs = 400,
  tookMs = 10,
  turns = { type: "semantic_vad", language_model: 5 },
}: Behaviour) {
  const settings = withChange(defaultSettings("alloy"), {
    audio: { input: { turn_detection: turns } },
  } as never)
  const seen = {
    asked: [] as Array<string>,
    running: 0,
    mostRunning: 0,
    lengths: [] as Array<number>,
    judged: [] as Array<readonly [string, string | undefined]>,
    outcomes: [] as Array<string>,
    trace: { messageEnds: 0 },
  }
  const open = { id: "turn" as string | undefined }
  const ends = new SemanticEnds<never>({
    history: { items },
    meters: { messageEnd: (outcome) => void seen.outcomes.push(outcome) },
    settings: () => settings,
    trace: seen.trace,
    ask: (prompt) =>
      Effect.suspend(() => {
        const last = prompt.at(-1)!
        if (last.type !== "message") throw new Error("the last item is no message")
        seen.asked.push(JSON.stringify(last.content))
        seen.mostRunning = Math.max(seen.mostRunning, ++seen.running)
        const answer = answers[Math.min(seen.asked.length, answers.length) - 1]!
        return Effect.as(Effect.sleep(tookMs), answer)
      }).pipe(Effect.ensuring(Effect.sync(() => seen.running--))),
    openId: () => open.id,
    language: () => "en",
    isJudged: () => isJudged,
    judge: (silenceOf) => void seen.lengths.push(silenceOf(sound)),
    leftMs: () => leftMs,
    judged: (id, transcript) => void seen.judged.push([id, transcript]),
  })
  const running: Fiber.Fiber<never> = yield* Effect.forkScoped(ends.run, { startImmediately: true })
  return { ends, open, seen, running }
})

describe("the end of a message", () => {
  it.effect("that the model takes for probable ends the turn soon, one that it does not late", () =>
    Effect.gen(function* () {
      for (const text of [complete, incomplete]) {
        const soon = yield* make({ answers: [says(1)] })
        const late = yield* make({ answers: [says(1e-6)] })
        for (const { ends, seen } of [soon, late]) {
          ends.foresee("turn", text)
          // The score stands until the model has answered, and nothing is prepared before.
          expect([seen.lengths, seen.judged]).toEqual([[byScore(text)], []])
          yield* TestClock.adjust(10)
          expect(seen.judged).toEqual([["turn", text]])
          expect(seen.outcomes).toEqual(["judged"])
          expect(seen.trace.messageEnds).toBe(1)
        }
        expect(soon.seen.lengths).toEqual([byScore(text), 240])
        expect(late.seen.lengths[1]).toBeGreaterThanOrEqual(800)
      }
    }),
  )

  it.effect("is asked about in the conversation so far, without the marks behind the text", () =>
    Effect.gen(function* () {
      const { ends, seen } = yield* make({})
      ends.foresee("turn", `${complete}.`)
      yield* TestClock.adjust(10)
      expect(seen.asked.length).toBe(1)
      expect(seen.asked[0]).toContain(`${complete}"`)
      expect(seen.judged).toEqual([["turn", `${complete}.`]])
    }),
  )

  const unasked: ReadonlyArray<readonly [string, Behaviour]> = [
    ["where the session does not say so", { turns: { type: "semantic_vad" } }],
    ["in a conversation with pictures", { items: [picture] }],
    ["where the silence has ended the turn before it could answer", { leftMs: 20 }],
    ["where silence alone ends turns", { turns: { type: "server_vad" } }],
    ["where nothing ends turns", { turns: null }],
    ["where a model hears the ends of turns", { isJudged: true }],
  ]
  it.effect.each(unasked)("is not asked about %s", ([, behaviour]) =>
    Effect.gen(function* () {
      const { ends, seen } = yield* make(behaviour)
      ends.foresee("turn", complete)
      expect(seen.judged).toEqual([["turn", complete]])
      yield* TestClock.adjust(1_000)
      expect([seen.asked, seen.outcomes]).toEqual([[], []])
      expect(seen.judged.length).toBe(1)
    }),
  )

  it.effect.each(["failed", "slow", "occupied", "template"] as const)(
    "is left to words and sound where the answer is: %s",
    (answer) =>
      Effect.gen(function* () {
        const { ends, seen } = yield* make({ answers: [answer] })
        for (const text of [complete, incomplete]) {
          ends.foresee("turn", text)
          yield* TestClock.adjust(10)
        }
        expect(seen.lengths).toEqual([byScore(complete), byScore(incomplete)])
        expect(seen.judged.map(([, text]) => text)).toEqual([complete, incomplete])
        // A template that has no end of a user's message never gets one.
        expect(seen.outcomes).toEqual(answer === "template" ? [answer] : [answer, answer])
        expect(seen.trace.messageEnds).toBe(0)
      }),
  )

  it.effect(
    "is left to words and sound where there is no answer before the silence is over, nor after 300 ms",
    () =>
      Effect.gen(function* () {
        for (const [leftMs, waitsMs] of [
          [100, 80],
          [5_000, 300],
        ] as const) {
          const { ends, seen } = yield* make({ leftMs, tookMs: 60_000 })
          ends.foresee("turn", complete)
          yield* TestClock.adjust(waitsMs - 1)
          expect([seen.judged, seen.running]).toEqual([[], 1])
          yield* TestClock.adjust(1)
          expect([seen.judged, seen.running]).toEqual([[["turn", complete]], 0])
          expect([seen.lengths, seen.outcomes]).toEqual([[byScore(complete)], ["late"]])
        }
      }),
  )

  it.effect("is known for a text that comes again in the turn, and asked again in the next", () =>
    Effect.gen(function* () {
      const { ends, open, seen } = yield* make({ answers: [says(1e-6)] })
      ends.foresee("turn", complete)
      yield* TestClock.adjust(10)
      ends.foresee("turn", undefined)
      ends.foresee("turn", `${complete}!`)
      expect(seen.asked.length).toBe(1)
      expect(seen.judged.length).toBe(3)
      expect(seen.lengths[2]).toBe(seen.lengths[1])
      open.id = "next"
      ends.foresee("next", complete)
      yield* TestClock.adjust(10)
      expect(seen.asked.length).toBe(2)
    }),
  )

  it.effect("is asked about no longer once speech goes on, or once the turn has ended", () =>
    Effect.gen(function* () {
      const spoken = yield* make({ tookMs: 200 })
      spoken.ends.foresee("turn", complete)
      yield* TestClock.adjust(100)
      spoken.ends.foresee("turn", undefined)
      yield* TestClock.adjust(1)
      expect([spoken.seen.running, spoken.seen.judged]).toEqual([0, [["turn", undefined]]])
      const ended = yield* make({ tookMs: 200 })
      ended.ends.foresee("turn", complete)
      yield* TestClock.adjust(100)
      ended.open.id = undefined
      yield* TestClock.adjust(100)
      // The answer is counted; nothing is judged by it and nothing prepared.
      expect(ended.seen.outcomes).toEqual(["judged"])
      expect([ended.seen.lengths, ended.seen.judged]).toEqual([[byScore(complete)], []])
    }),
  )

  type Step = { readonly is: "text"; readonly text: number } | { readonly is: "speech" | "wait" | "turn" }
  const step: fc.Arbitrary<Step> = fc.oneof(
    fc.record({ is: fc.constant("text" as const), text: fc.nat(60) }),
    fc.record({ is: fc.constantFrom("speech" as const, "wait" as const, "turn" as const) }),
  )
  it.effect(
    "is asked about at most 32 times a turn, one at a time, and the newest transcript is always judged",
    () =>
      Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.array(step, { maxLength: 80 }), fc.nat(400), (steps, tookMs) =>
            Effect.runPromise(
              Effect.gen(function* () {
                const { ends, open, seen } = yield* make({ tookMs, answers: [says(1), says(1e-6), "failed"] })
                let turn = 0
                let before = 0
                let newest: string | undefined
                for (const one of steps) {
                  if (one.is === "turn") {
                    expect(seen.asked.length - before).toBeLessThanOrEqual(32)
                    before = seen.asked.length
                    open.id = `turn${++turn}`
                    newest = undefined
                  } else if (one.is === "text") {
                    newest = `${complete} ${"and more ".repeat(one.text)}`
                    ends.foresee(open.id!, newest)
                  } else if (one.is === "speech") {
                    newest = undefined
                    ends.foresee(open.id!, undefined)
                  }
                  yield* TestClock.adjust(one.is === "wait" ? 500 : 7)
                }
                yield* TestClock.adjust(500)
                expect(seen.asked.length - before).toBeLessThanOrEqual(32)
                expect(seen.mostRunning).toBeLessThanOrEqual(1)
                expect(seen.running).toBe(0)
                if (newest !== undefined) expect(seen.judged.at(-1)).toEqual([open.id, newest])
              }).pipe(Effect.scoped, Effect.provide(TestClock.layer())),
            ),
          ),
        ),
      ),
  )
})
