// The adapter against random-weight graphs with the published names: its audio, that it is repeatable, what it
// refuses, and that other requests are served in between.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { cangjie } from "#engines/chatterbox/Cangjie.ts"
import { chatterboxOnnx } from "#engines/chatterbox/ChatterboxOnnx.ts"
import { chatterboxPieces, taggedText } from "#engines/chatterbox/ChatterboxText.ts"
import { choose, specialTokens, withControls } from "#engines/chatterbox/SpeechTokens.ts"
import { chirp } from "../../support/audio/AudioFiles.ts"
import { openSpeech, say, speechOutlet, speechRequest } from "../kokoro/speech.ts"
import { samplesPerToken, toyChatterbox } from "./toyChatterbox.ts"

const toy = { voice: { preset: "default" } }
const clip = (amplitude: number, samples = 48_000) => ({
  clip: chirp(samples, 24_000, amplitude),
  rateHz: 24_000,
  transcript: "Whatever.",
})
const sentence = "Well, good morning to you all. It is late."

describe("chatterbox-onnx", () => {
  it.effect("loads the published names, and speaks piece by piece", () =>
    Effect.gen(function* () {
      const engine = yield* openSpeech(chatterboxOnnx, yield* toyChatterbox())
      expect(engine.facts).toMatchObject({ voices: ["default"] })
      expect(engine.facts.realTimeFactor).toBeGreaterThanOrEqual(0)
      expect(engine.facts.languages).toEqual(["en", "fr", "de", "es", "it", "pt", "pl", "ja", "ar", "zh"])
      const { end, outlet, samples } = yield* say(engine, speechRequest(sentence, toy))
      expect(outlet.startedWith).toEqual([{ pieces: 1 }])
      expect(end).toEqual({ samples: samples.length, computeMs: expect.any(Number) })
      expect(samples.length).toBeGreaterThan(10 * samplesPerToken)
      expect(samples.some((sample) => sample !== 0)).toBe(true)
    }),
  )

  it.effect("gives the same bytes each time, in every layout of the export, alone and beside others", () =>
    Effect.gen(function* () {
      const files = yield* toyChatterbox()
      const engine = yield* openSpeech(chatterboxOnnx, files)
      const { samples } = yield* say(engine, speechRequest(sentence, toy))
      const again = yield* openSpeech(chatterboxOnnx, files)
      expect((yield* say(again, speechRequest(sentence, toy))).samples).toEqual(samples)
      const [first, other, second] = yield* Effect.all(
        [
          say(engine, speechRequest(sentence, toy)),
          say(engine, speechRequest("Something else meanwhile.", { voice: clip(9_000) })),
          say(engine, speechRequest(sentence, { ...toy, priority: "batch" })),
        ],
        { concurrency: "unbounded" },
      )
      expect(first.samples).toEqual(samples)
      expect(second.samples).toEqual(samples)
      expect(other.samples).not.toEqual(samples)
      const lastOnly = yield* openSpeech(chatterboxOnnx, yield* toyChatterbox({ lastOnly: true }))
      expect((yield* say(lastOnly, speechRequest(sentence, toy))).samples).toEqual(samples)
      const half = yield* openSpeech(chatterboxOnnx, yield* toyChatterbox({ cache: "float16" }))
      expect((yield* say(half, speechRequest(sentence, toy))).samples.length).toBeGreaterThan(0)
      const bare = yield* toyChatterbox({ positionIds: false, exaggeration: false })
      const plain = yield* openSpeech(chatterboxOnnx, bare)
      expect((yield* say(plain, speechRequest(sentence, toy))).samples).not.toEqual(samples)
    }),
  )

  it.effect("listens to the text, the voice, the language, the guidance and the feeling", () =>
    Effect.gen(function* () {
      const files = yield* toyChatterbox()
      const engine = yield* openSpeech(chatterboxOnnx, files)
      const speak = (more: Parameters<typeof speechRequest>[1], text = sentence) =>
        Effect.map(say(engine, speechRequest(text, { ...toy, ...more })), ({ samples }) =>
          Buffer.from(samples.buffer).toString("base64"),
        )
      const options = [{ guidance: 0 }, { exaggeration: 1 }, { repetitionPenalty: 3 }]
      const others = yield* Effect.forEach(options, (option) =>
        Effect.flatMap(openSpeech(chatterboxOnnx, files, option), (changed) =>
          Effect.map(say(changed, speechRequest(sentence, toy)), ({ samples }) =>
            Buffer.from(samples.buffer).toString("base64"),
          ),
        ),
      )
      const replies = [
        yield* speak({}),
        yield* speak({}, "Well, good evening to you all. It is late."),
        yield* speak({ voice: clip(9_000) }),
        yield* speak({ voice: clip(3_000) }),
        yield* speak({ language: "de" }),
        ...others,
      ]
      expect(replies.map((reply) => replies.indexOf(reply))).toEqual(replies.map((_, i) => i))
    }),
  )

  it.effect("speaks until the model stops, and bounds an endless reply", () =>
    Effect.gen(function* () {
      const speak = (stopAt: number) =>
        Effect.flatMap(toyChatterbox({ stopAt }), (files) =>
          Effect.flatMap(openSpeech(chatterboxOnnx, files), (engine) =>
            Effect.map(say(engine, speechRequest("Hello.", toy)), ({ samples }) => samples.length),
          ),
        )
      const short = yield* speak(40)
      const long = yield* speak(50)
      expect(long - short).toBeCloseTo(10 * samplesPerToken, -3)
      // 25 tokens and 5 for each of the six characters.
      const endless = yield* speak(1_000_000)
      expect(endless).toBeLessThan((2 + 25 + 30 + 3 + 1) * samplesPerToken)
      expect(endless).toBeGreaterThan(50 * samplesPerToken)
    }),
  )

  it.effect("says what is wrong with a request before anything starts", () =>
    Effect.gen(function* () {
      const engine = yield* openSpeech(chatterboxOnnx, yield* toyChatterbox())
      for (const [request, field] of [
        [speechRequest("Hello.", { voice: { preset: "af_bella" } }), "voice"],
        [speechRequest("Hello.", { voice: clip(9_000, 2_400) }), "voice"],
        [speechRequest("Hello.", { voice: clip(0) }), "voice"],
        [speechRequest("Hello.", { ...toy, language: "xx" }), "language"],
        [speechRequest("Hello.", { ...toy, speed: 1.5 }), "speed"],
        [speechRequest(" …!? 🎉", toy), "input"],
      ] as const) {
        const outlet = speechOutlet()
        const error = yield* Effect.flip(engine.synthesize(request, outlet))
        expect(error).toMatchObject({ reason: "InvalidInput", field })
        expect(outlet.startedWith).toEqual([])
      }
    }),
  )

  it.effect("refuses files that cannot keep its promise", () =>
    Effect.gen(function* () {
      const refusal = (files: Readonly<Record<string, string>>, options = {}) =>
        Effect.map(Effect.flip(openSpeech(chatterboxOnnx, files, options)), (error) => {
          expect(error).toMatchObject({ reason: "LoadFailed" })
          return "detail" in error ? error.detail : ""
        })
      const files = yield* toyChatterbox()
      const random = yield* toyChatterbox({ random: true })
      expect(yield* refusal(random)).toContain("RandomNormalLike")
      yield* openSpeech(chatterboxOnnx, random, { repeatable: false })
      const { languageModel: _, ...without } = files
      expect(yield* refusal(without)).toContain("languageModel")
      expect(yield* refusal({ ...files, languageModel: files.embedTokens })).toContain("inputs_embeds")
      expect(yield* refusal({ ...files, defaultVoice: files.tokenizer })).toContain("WAV")
      expect(yield* refusal({ ...files, cangjie: files.tokenizer })).not.toBe("")
      const { cangjie: __, ...noChinese } = files
      const engine = yield* openSpeech(chatterboxOnnx, noChinese)
      expect(engine.facts.languages).not.toContain("zh")
    }),
  )

  it.live("lets a stream in between two steps of a long reply, and stops on cancel", () =>
    Effect.gen(function* () {
      const engine = yield* openSpeech(chatterboxOnnx, yield* toyChatterbox({ stopAt: 400 }))
      const long = speechOutlet()
      const text = "A long sentence that goes on and on, for ever and ever, it seems. ".repeat(10)
      const fiber = yield* Effect.forkChild(
        engine.synthesize(speechRequest(text, { ...toy, priority: "batch" }), long),
        { startImmediately: true },
      )
      yield* long.reached(0)
      const { samples } = yield* say(engine, speechRequest("Hello.", toy))
      expect(samples.length).toBeGreaterThan(0)
      expect(fiber.pollUnsafe()).toBeUndefined()
      yield* Fiber.interrupt(fiber)
      const units = long.units.length
      yield* say(engine, speechRequest("Hello.", toy))
      expect(long.units.length).toBe(units)
    }),
  )
})

describe("what the model reads", () => {
  it("is one sentence a piece, the first one cut at its first clause", () => {
    expect([...chatterboxPieces("Good morning, everybody. How are you? Fine!")]).toEqual([
      "Good morning,",
      "everybody.",
      "How are you?",
      "Fine!",
    ])
    expect([...chatterboxPieces("Well, yes. … No!")]).toEqual(["Well, yes.", "No!"])
    expect([...chatterboxPieces(" …!? ")]).toEqual([])
  })

  it("is lower case, tagged, with spaces spelled out and an end", () => {
    expect(taggedText("Guten Tag: “Ähm” — so", "de")).toBe(
      '[de]guten[SPACE]tag,[SPACE]"a\u0308hm"[SPACE]-[SPACE]so.',
    )
    expect(taggedText("What?", "en")).toBe("[en]what?")
  })

  it("is the keys of Chinese characters", () => {
    const spelled = cangjie(["好\tvnd", "號\tvnd", "女\tv", "broken", "好\tagain"])
    expect(taggedText("好號女a，", "zh", spelled)).toBe(
      "[zh][cj_v][cj_n][cj_d][cj_.][cj_v][cj_n][cj_d][cj_1][cj_.][cj_v][cj_.]a,",
    )
  })

  it("stands between control tokens, the tokenizer's own or ours", () => {
    expect(withControls([7, 8])).toEqual([6563, 255, 7, 8, 0, 6561, 6561])
    const own = [6563, 255, 7, 0, 6561, 6561]
    expect(withControls(own)).toBe(own)
  })
})

describe("the choice of a token", () => {
  const logits = (values: Readonly<Record<number, number>>) => {
    const all = new Float32Array(8194).fill(-50)
    for (const [id, value] of Object.entries(values)) all[Number(id)] = value
    return all
  }
  const plain = { guidance: 0, repetitionPenalty: 1 }

  it("is the likeliest speech token or the stop, never another control token", () => {
    expect(choose([logits({ 5: 1, 9: 2 })], new Set(), plain)).toBe(9)
    expect(choose([logits({ 5: 1, 6561: 9, 6563: 9, 8000: 9 })], new Set(), plain)).toBe(5)
    expect(choose([logits({ 5: 1, [specialTokens.stopSpeech]: 2 })], new Set(), plain)).toBe(
      specialTokens.stopSpeech,
    )
    expect(choose([logits({ 5: 2, 9: 2 })], new Set(), plain)).toBe(5)
  })

  it("is what the text makes likelier, and not what was said already", () => {
    const guided = { guidance: 1, repetitionPenalty: 1 }
    expect(choose([logits({ 5: 2, 9: 3 }), logits({ 5: 0, 9: 3 })], new Set(), guided)).toBe(5)
    expect(choose([logits({ 5: 2, 9: 3 })], new Set([9]), { guidance: 0, repetitionPenalty: 2 })).toBe(5)
    expect(choose([logits({ 5: -1, 9: -0.9 })], new Set([9]), { guidance: 0, repetitionPenalty: 2 })).toBe(5)
  })

  it("is none of a model that returns NaN", () => {
    expect(choose([new Float32Array(8194).fill(Number.NaN)], new Set(), plain)).toBe(-1)
  })
})
