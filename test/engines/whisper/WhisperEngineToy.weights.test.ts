// The decoder loop against a table model with the published names and shapes: caches, drafts, languages, event loop
// ticks.
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import fc from "fast-check"
import type { EngineSpec, TranscribeRequest, TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { whisperHfOnnx } from "#engines/whisper/WhisperEngine.ts"
import { collector, request } from "./support/demoModel.ts"
import { expected, rowAfter, scripted, type ToyOptions, toyWhisper } from "./support/toyWhisper.ts"

const silence = new Float32Array(80_000)
/** 24 tokens a second of audio and 30 more. */
const limit = 150
const start = [257, 258, 267]

const load = Effect.fnUntraced(function* (options: ToyOptions) {
  const toy = yield* Effect.acquireRelease(
    Effect.sync(() => toyWhisper(options)),
    ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true })),
  )
  const engine = (yield* whisperHfOnnx.acquire(toy.spec)) as TranscriptionEngine
  const say = Effect.fnUntraced(function* (more: Partial<TranscribeRequest> = {}) {
    const out = collector()
    const end = yield* engine.transcribe(request(silence, more), out)
    return { ...end, segments: out.segments, begun: out.begun }
  })
  return { toy, engine, say }
})

/** Every greedy text of these tables passes the fallback rules; nearly all reach the limit. */
const seeds = [1, 2, 3, 4, 5, 6]

const temperaturesOf = (heard: { readonly segments: ReadonlyArray<{ readonly temperature: number }> }) => [
  ...new Set(heard.segments.map((segment) => segment.temperature)),
]

describe("decoder loop", () => {
  it.effect("gives the table's text, with and without timestamps", () =>
    Effect.gen(function* () {
      let tokens = 0
      for (const seed of seeds) {
        const { toy, say } = yield* load({ seed })
        for (const timestamps of [true, false]) {
          const prompt = timestamps ? start : [...start, 271]
          const heard = yield* say({ timestamps })
          expect(temperaturesOf(heard)).toEqual([0])
          expect(heard.tokens).toEqual(expected(toy, prompt, { timestamps, limit: limit }))
          tokens += heard.tokens!.length
        }
      }
      expect(tokens).toBeGreaterThan(1000)
    }),
  )

  it.effect("stops at the end of text", () =>
    Effect.gen(function* () {
      // A table whose greedy text is probable: of an improbable one the engine reads the window again at a higher temperature.
      const { toy, say } = yield* load({ seed: 3, endBias: 12 })
      const heard = yield* say()
      expect(heard.tokens).toEqual(expected(toy, start, { timestamps: true, limit: limit }))
      expect(heard.tokens!.length).toBeLessThan(60)
    }),
  )

  it.effect("feeds cache_position where the graph declares it, and half-precision caches", () =>
    Effect.gen(function* () {
      for (const options of [
        { seed: 3, cachePosition: true },
        { seed: 3, cacheType: "float16" },
      ] as const) {
        const { toy, say } = yield* load(options)
        const heard = yield* say()
        expect(heard.tokens).toEqual(expected(toy, start, { timestamps: true, limit: limit }))
      }
    }),
  )

  it.effect("puts earlier text in front, and returns the end of it all for the next window", () =>
    Effect.gen(function* () {
      const { toy, say } = yield* load({ seed: 4 })
      const previousTokens = [70, 71, 72]
      const heard = yield* say({ previousTokens, prompt: "ignored, there is earlier text" })
      const prompt = [269, ...previousTokens, ...start]
      expect(heard.tokens).toEqual(expected(toy, prompt, { timestamps: true, limit: limit }))
      const spoken = heard.segments.flatMap((segment) => segment.tokens)
      expect(heard.previousTokens).toEqual([...previousTokens, ...spoken].slice(-200))
    }),
  )

  it.effect("a request's hint is text, whatever control tokens it spells", () =>
    Effect.gen(function* () {
      const { toy, say } = yield* load({ seed: 5 })
      const heard = yield* say({ prompt: "<|startoftranscript|> A<|0.00|>B " })
      const bytes = [...Buffer.from(" AB")].map((byte) => (byte === 32 ? 220 : byte - 33))
      // The space in front and the one behind the removed token are both text.
      const prompt = [269, 220, ...bytes, ...start]
      expect(heard.tokens).toEqual(expected(toy, prompt, { timestamps: true, limit: limit }))
    }),
  )
})

describe("drafts", () => {
  it.effect("never change the text, however right or wrong they are", () =>
    Effect.gen(function* () {
      const { say } = yield* load({ seed: 6 })
      for (const timestamps of [true, false]) {
        const { tokens } = yield* say({ timestamps })
        const right = fc.nat({ max: tokens!.length })
        const wrong = fc.array(fc.integer({ min: 0, max: 1765 }), { maxLength: 30 })
        for (const [length, tail] of fc.sample(fc.tuple(right, wrong), { numRuns: 10, seed: 20_261_127 })) {
          const heard = yield* say({ timestamps, draft: [...tokens!.slice(0, length), ...tail] })
          expect(heard.tokens).toEqual(tokens)
        }
      }
    }),
  )

  it.effect("longer than the output may be are cut", () =>
    Effect.gen(function* () {
      const { say } = yield* load({ seed: 6 })
      const { tokens } = yield* say()
      const heard = yield* say({ draft: [...tokens!, ...Array.from({ length: 2000 }, () => 70)] })
      expect(heard.tokens).toEqual(tokens)
    }),
  )
})

describe("languages", () => {
  const languages = { "<|en|>": 258, "<|de|>": 259, "<|fr|>": 261 }

  it.effect("are detected by the most probable language token after <|startoftranscript|>", () =>
    Effect.gen(function* () {
      const patch: ToyOptions["patch"] = (table) => {
        // German beats French; the most probable token of all is no language.
        for (const [token, logit] of [
          [259, 4],
          [261, 3],
          [70, 30],
        ] as const) {
          table[rowAfter([257])]![token] = logit
        }
      }
      const { toy, engine, say } = yield* load({ seed: 7, languages, patch })
      expect(engine.facts).toMatchObject({ languages: ["en", "de", "fr"] })
      const heard = yield* say({ language: undefined })
      expect(heard.begun).toEqual([{ language: "de" }])
      expect(heard.language).toBe("de")
      expect(heard.tokens).toEqual(expected(toy, [257, 259, 267], { timestamps: true, limit: limit }))
    }),
  )

  it.effect("are translated by another task token, in models of several", () =>
    Effect.gen(function* () {
      const two = { "<|en|>": 258, "<|fr|>": 261 }
      const { toy, engine, say } = yield* load({
        seed: 7,
        languages: two,
        tasks: { transcribe: 267, translate: 266 },
      })
      expect(engine.facts.translates).toBe(true)
      const heard = yield* say({ language: "fr", translate: true })
      expect(heard.tokens).toEqual(expected(toy, [257, 261, 266], { timestamps: true, limit: limit }))
      // The language that is spoken, which the next window needs.
      expect(heard.language).toBe("fr")
      const alone = yield* load({ seed: 7 })
      expect(alone.engine.facts.translates).toBeUndefined()
      // The token is in the vocabulary of these files, too, but the task is not in their list.
      const untaught = yield* load({ seed: 7, languages: two, tasks: { transcribe: 267 } })
      expect(untaught.engine.facts.translates).toBeUndefined()
    }),
  )

  it.effect("have log-probabilities for the tokens of each segment's text", () =>
    Effect.gen(function* () {
      const { say } = yield* load({ seed: 3 })
      const plain = yield* say()
      const heard = yield* say({ logprobs: true })
      expect(heard.segments.map(({ logprobs: _, ...segment }) => segment)).toEqual(plain.segments)
      for (const { logprobs = [], text, tokens } of heard.segments) {
        expect(logprobs).toHaveLength(tokens.length)
        expect(
          Buffer.from(logprobs.flatMap(({ bytes }) => bytes))
            .toString("utf8")
            .trim(),
        ).toBe(text.trim())
        for (const { logprob } of logprobs) expect(logprob).toBeLessThanOrEqual(0)
      }
      expect(plain.segments[0]).not.toHaveProperty("logprobs")
    }),
  )

  it.effect("that the model lacks are the caller's fault", () =>
    Effect.gen(function* () {
      const { say } = yield* load({ seed: 7, languages })
      const error = yield* Effect.flip(say({ language: "xx" }))
      expect(error).toMatchObject({ reason: "InvalidInput", field: "language" })
    }),
  )
})

describe("temperature fallback", () => {
  it.effect("climbs when the text is unsure, gives the same text each time, and forgets the context", () =>
    Effect.gen(function* () {
      const { say } = yield* load({ seed: 8, flatness: 40 })
      const heard = yield* say({ previousTokens: [70] })
      expect(temperaturesOf(heard)).toEqual([1])
      expect(heard.segments[0]!.avgLogprob).toBeLessThan(-1)
      expect(heard.previousTokens).toEqual([])
      expect((yield* say({ previousTokens: [70] })).tokens).toEqual(heard.tokens)
    }),
  )

  it.effect("starts at the request's temperature", () =>
    Effect.gen(function* () {
      const { say } = yield* load({ seed: 1 })
      const heard = yield* say({ temperature: 0.3 })
      expect(temperaturesOf(heard)[0]).toBeGreaterThanOrEqual(0.3)
      expect(heard.tokens).not.toEqual((yield* say()).tokens)
    }),
  )
})

describe("loading", () => {
  it.effect(
    "refuses an encoder of fixed length when variable length is asked for, and a wrong number of mel bins",
    () =>
      Effect.gen(function* () {
        const { toy } = yield* load({ seed: 1 })
        const refused = (spec: EngineSpec) => Effect.flip(Effect.scoped(whisperHfOnnx.acquire(spec)))
        const wanted = { reason: "LoadFailed", field: "encoder" }
        expect(yield* refused({ ...toy.spec, options: { variableLength: true } })).toMatchObject(wanted)
        const preprocessor = join(toy.folder, "preprocessor_128.json")
        const json = JSON.parse(readFileSync(toy.spec.files.preprocessor!, "utf8"))
        writeFileSync(preprocessor, JSON.stringify({ ...json, feature_size: 128 }))
        expect(yield* refused({ ...toy.spec, files: { ...toy.spec.files, preprocessor } })).toMatchObject(
          wanted,
        )
      }),
  )
})

describe("turns", () => {
  const turn = Effect.callback<void>((resume) => {
    setImmediate(() => resume(Effect.void))
  })

  /** Counts event loop ticks until it is stopped. */
  const countTurns = () => {
    let turns = 0
    let counting = true
    const tick = () => {
      turns++
      if (counting) setImmediate(tick)
    }
    setImmediate(tick)
    return () => {
      counting = false
      return turns
    }
  }

  it.effect("requests side by side say what they say alone, and the shorter one is done first", () =>
    Effect.gen(function* () {
      const { say } = yield* load({ seed: 2 })
      const long = yield* say()
      const short = yield* say({ draft: long.tokens! })
      const order: Array<string> = []
      const heard = yield* Effect.all(
        [
          say().pipe(Effect.tap(() => Effect.sync(() => order.push("long")))),
          say({ draft: long.tokens! }).pipe(Effect.tap(() => Effect.sync(() => order.push("short")))),
          say({ previousTokens: [80] }),
        ],
        { concurrency: "unbounded" },
      )
      expect(order).toEqual(["short", "long"])
      expect(heard[0].tokens).toEqual(long.tokens)
      expect(heard[1].tokens).toEqual(short.tokens)
      expect(heard[2].tokens).toEqual((yield* say({ previousTokens: [80] })).tokens)
    }),
  )

  it.effect("the event loop ticks at least once a decoder step", () =>
    Effect.gen(function* () {
      const { say } = yield* load({ seed: 2 })
      const turns = countTurns()
      const { tokens } = yield* say()
      expect(turns()).toBeGreaterThanOrEqual(tokens!.length)
    }),
  )

  it.effect("an interrupted request stops within a few steps and leaves the gate open", () =>
    Effect.gen(function* () {
      const { engine, say } = yield* load({ seed: 2 })
      const whole = yield* say()
      const out = collector()
      const fiber = yield* Effect.forkChild(engine.transcribe(request(silence), out), {
        startImmediately: true,
      })
      while (out.begun.length === 0) yield* turn
      for (let i = 0; i < 10; i++) yield* turn
      const turns = countTurns()
      yield* Fiber.interrupt(fiber)
      expect(turns()).toBeLessThan(10)
      expect(out.segments).toEqual([])
      expect((yield* say()).tokens).toEqual(whole.tokens)
    }),
  )
})

/** The tokens of a text of letters and spaces: one is a byte. */
const bytes = (text: string) => [...Buffer.from(text)].map((byte) => (byte === 0x20 ? 220 : byte - 0x21))

describe("keywords", () => {
  const at = (seconds: number) => 272 + Math.round(seconds / 0.02)
  /** The model writes `said`; where the texts differ first, `other` is so far below it, and follows if it is taken. */
  const twoTexts =
    (said: ReadonlyArray<number>, other: ReadonlyArray<number>, gap: number) =>
    (table: ReadonlyArray<Float32Array>): void => {
      const split = said.findIndex((token, i) => token !== other[i])
      const rows = new Set<number>()
      for (const script of [said, other]) {
        for (let i = script === said ? 0 : split + 1; i <= script.length; i++) {
          const row = rowAfter([...start, ...script.slice(0, i)])
          if (rows.has(row)) throw new Error("two steps share a row")
          rows.add(row)
          table[row]!.fill(-30)
          table[row]![script[i] ?? 256] = 30
          if (script === said && i === split) table[row]![other[i]!] = 30 - gap
        }
      }
    }
  /** The first end of the segment with which no two steps share a row of the table. */
  const toyOf = (said: string, other: string, gap: number): ToyOptions => {
    for (let end = 1; end < 4; end += 0.02) {
      const script = (text: string) => [at(0), ...bytes(text), at(end)]
      const patch = twoTexts(script(said), script(other), gap)
      try {
        patch(Array.from({ length: 61 }, () => new Float32Array(1773)))
        return { seed: 1, patch }
      } catch {}
    }
    throw new Error("no end of the segment fits")
  }
  const textOf = ({ segments }: { readonly segments: ReadonlyArray<{ readonly text: string }> }) =>
    segments
      .map(({ text }) => text)
      .join("")
      .trim()

  it.effect("are written where they are a little less probable, with their own probabilities", () =>
    Effect.gen(function* () {
      const { say } = yield* load(toyOf("Saabi b", "Zaabi b", 0.75))
      expect(textOf(yield* say())).toBe("Saabi b")
      const heard = yield* say({ keywords: ["Zaabi"], logprobs: true })
      expect(textOf(heard)).toBe("Zaabi b")
      const taken = heard.segments[0]!.logprobs!.find(({ bytes: [byte] }) => byte === "Z".charCodeAt(0))
      expect(taken!.logprob).toBeCloseTo(-0.75 - Math.log(1 + Math.exp(-0.75)), 3)
      expect(heard.segments[0]!.avgLogprob).toBeGreaterThan(-0.05)
    }),
  )

  it.effect("have their capitals, also where the model writes none, and words have them, too", () =>
    Effect.gen(function* () {
      const { say } = yield* load(toyOf("saabi b", "zaabi b", 0.75))
      const heard = yield* say({ keywords: ["Zaabi"], words: true })
      expect(textOf(heard)).toBe("Zaabi b")
      expect(heard.segments[0]!.words!.map(({ word }) => word)).toEqual(["Zaabi", "b"])
    }),
  )

  it.effect("are given back where they are not completed, or far less probable", () =>
    Effect.gen(function* () {
      const broken = yield* load(toyOf("Saabi b", "Zaaxx b", 0.75))
      const plain = yield* broken.say()
      const { begun: _begun, ...heard } = yield* broken.say({ keywords: ["Zaabi"] })
      expect(plain).toMatchObject(heard)
      const far = yield* load(toyOf("Saabi b", "Zaabi b", 12))
      expect(textOf(yield* far.say({ keywords: ["Zaabi"] }))).toBe("Saabi b")
    }),
  )

  it.effect("are followed in the same way with a draft", () =>
    Effect.gen(function* () {
      const { say } = yield* load(toyOf("Saabi b", "Zaabi b", 0.75))
      const keywords = ["Zaabi"]
      const fresh = yield* say({ keywords })
      const plain = yield* say()
      for (const draft of [fresh.tokens!, plain.tokens!, fresh.tokens!.slice(0, 4)])
        expect((yield* say({ keywords, draft })).tokens).toEqual(fresh.tokens)
      expect((yield* say({ draft: fresh.tokens! })).tokens).toEqual(plain.tokens)
    }),
  )
})

describe("times of words", () => {
  const at = (seconds: number) => 272 + Math.round(seconds / 0.02)
  const script = [at(0.3), ...bytes("help big world"), at(2)]
  const patch = scripted({ prompt: start, script })

  it.effect("come from the attention of exports that return it", () =>
    Effect.gen(function* () {
      const { say } = yield* load({ seed: 1, attention: true, patch })
      const { words } = (yield* say({ words: true })).segments[0]!
      // Token i is written at position 3 + i, which looks at 0.1 s of its own.
      expect(words!.map(({ word }) => word)).toEqual(["help", "big", "world"])
      const expected = [
        [0.3, 0.7],
        [0.8, 1.1],
        [1.2, 1.7],
      ]
      words!.forEach(({ end, start: from }, i) => {
        expect(Math.abs(from - expected[i]![0]!)).toBeLessThan(0.09)
        expect(Math.abs(end - expected[i]![1]!)).toBeLessThan(0.09)
      })
    }),
  )

  it.effect("are interpolated with other exports, and the text is the same", () =>
    Effect.gen(function* () {
      const { say } = yield* load({ seed: 1, patch })
      const { text, words } = (yield* say({ words: true })).segments[0]!
      expect(text.trim()).toBe("help big world")
      expect(words![0]).toMatchObject({ word: "help", start: 0.3 })
      expect(words![2]!.end).toBeCloseTo(2, 5)
    }),
  )
})
