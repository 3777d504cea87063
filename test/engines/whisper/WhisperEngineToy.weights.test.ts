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
import { expected, rowAfter, type ToyOptions, toyWhisper } from "./support/toyWhisper.ts"

const silence = new Float32Array(80_000)
/** 24 tokens a second of audio and 30 more. */
const limit = 150
const start = [257, 258, 260]

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
          const prompt = timestamps ? start : [...start, 264]
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
      const { toy, say } = yield* load({ seed: 2, endBias: 12 })
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
      const prompt = [262, ...previousTokens, ...start]
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
      const prompt = [262, 220, ...bytes, ...start]
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
      expect(heard.tokens).toEqual(expected(toy, [257, 259, 260], { timestamps: true, limit: limit }))
    }),
  )

  it.effect("are translated by another task token, in models of several", () =>
    Effect.gen(function* () {
      const two = { "<|en|>": 258, "<|fr|>": 261 }
      const { toy, engine, say } = yield* load({ seed: 7, languages: two })
      expect(engine.facts.translates).toBe(true)
      const heard = yield* say({ language: "fr", translate: true })
      expect(heard.tokens).toEqual(expected(toy, [257, 261, 259], { timestamps: true, limit: limit }))
      // The language that is spoken, which the next window needs.
      expect(heard.language).toBe("fr")
      const alone = yield* load({ seed: 7 })
      expect(alone.engine.facts.translates).toBeUndefined()
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
