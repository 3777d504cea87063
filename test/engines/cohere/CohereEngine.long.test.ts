// The engine against a table model with the published names and shapes.
import { rmSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { cohereHfOnnx } from "#engines/cohere/CohereEngine.ts"
import type { EngineSpec, TranscribeRequest, TranscriptionEngine } from "#engines/protocol/Engine.ts"
import { collector, request } from "../whisper/support/demoModel.ts"
import { expected, idOf, promptOf, scripted, type ToyCohereOptions, toyCohere } from "./support/toyCohere.ts"

const makeToy = (options: ToyCohereOptions) =>
  Effect.acquireRelease(
    Effect.sync(() => toyCohere(options)),
    ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true })),
  )

const load = Effect.fnUntraced(function* (options: ToyCohereOptions) {
  const toy = yield* makeToy(options)
  const engine = (yield* cohereHfOnnx.acquire(toy.spec)) as TranscriptionEngine
  const say = Effect.fnUntraced(function* (samples: Float32Array, more: Partial<TranscribeRequest> = {}) {
    const out = collector()
    const end = yield* engine.transcribe(request(samples, more), out)
    return { ...end, begun: out.begun, segments: out.segments, tokens: out.segments[0]?.tokens ?? [] }
  })
  return { toy, engine, say }
})

const audio = new Float32Array(20_000).map((_, i) => Math.sin(i / 9))

describe("cohere-hf-onnx", () => {
  it.effect("states what it is", () =>
    Effect.gen(function* () {
      const { engine } = yield* load({ seed: 1 })
      expect(engine.facts).toMatchObject({ windowSeconds: 35, slots: 4 })
      expect(engine.facts.languages).toHaveLength(14)
    }),
  )

  it.effect("gives the table's text: prompt, masks, positions and caches are right", () =>
    Effect.gen(function* () {
      let tokens = 0
      for (const seed of [1, 2, 3, 4]) {
        for (const masks of [false, true]) {
          const { toy, say } = yield* load({ seed, masks })
          const heard = yield* say(audio)
          expect(heard.tokens).toEqual(expected(toy, promptOf("en"), audio.length, { masks }))
          tokens += heard.tokens.length
        }
      }
      expect(tokens).toBeGreaterThan(200)
    }),
  )

  it.effect("stops at the end token", () =>
    Effect.gen(function* () {
      const { toy, say } = yield* load({ seed: 2, endBias: 13 })
      const heard = yield* say(audio)
      expect(heard.tokens).toEqual(expected(toy, promptOf("en"), audio.length))
      expect(heard.tokens.length).toBeLessThan(40)
    }),
  )

  it.effect("puts language and punctuation into the prompt; English and punctuated by default", () =>
    Effect.gen(function* () {
      const { toy, say } = yield* load({ seed: 3 })
      const plain = yield* say(audio, { language: undefined })
      expect(plain.begun).toEqual([{ language: "en" }])
      expect(plain.tokens).toEqual(expected(toy, promptOf("en"), audio.length))
      const french = yield* say(audio, { language: "fr", punctuation: false })
      expect(french.language).toBe("fr")
      expect(french.tokens).toEqual(expected(toy, promptOf("fr", "<|nopnc|>"), audio.length))
      const error = yield* Effect.flip(say(audio, { language: "ru" }))
      expect(error).toMatchObject({ reason: "InvalidInput", field: "language" })
    }),
  )

  it.effect("one segment a piece, its text cleaned and ready to be joined", () =>
    Effect.gen(function* () {
      const script = [".", "▁", ".", "▁A", "b", "c", ".", "▁D"]
      const { say } = yield* load({ seed: 1, patch: scripted(promptOf("en"), script, audio.length) })
      const heard = yield* say(audio, { words: true })
      expect(heard.segments).toHaveLength(1)
      expect(heard.segments[0]).toMatchObject({ start: 0, end: 1.25, temperature: 0, noSpeechProb: 0 })
      expect(heard.segments[0]!.text).toBe(" Abc. D")
      expect(heard.segments[0]!.words!.map(({ word }) => word)).toEqual(["Abc.", "D"])
      expect(heard).toMatchObject({ consumedSamples: audio.length, previousTokens: [] })
    }),
  )

  it.effect("a character spelled by its bytes arrives whole; other bytes and U+FFFD are dropped", () =>
    Effect.gen(function* () {
      const bytes = (text: string) =>
        Array.from(Buffer.from(text), (byte) => `<0x${byte.toString(16).toUpperCase()}>`)
      const script = ["▁A", ...bytes("你"), "b", "<0xFF>", "<0xE4>", "c", "\ufffd", ...bytes("👍")]
      const { say } = yield* load({ seed: 1, patch: scripted(promptOf("en"), script, audio.length) })
      const heard = yield* say(audio, { words: true })
      expect(heard.segments[0]!.text).toBe(" A你bc👍")
      expect(heard.segments[0]!.words!.map(({ word }) => word)).toEqual(["A你bc👍"])
      expect(heard.previousTokens).toEqual([])
    }),
  )

  it.effect("bytes of a character wait for the next piece, and are dropped where it does not go on", () =>
    Effect.gen(function* () {
      const first = load({
        seed: 1,
        patch: scripted(promptOf("en"), ["▁A", "<0xE4>", "<0xBD>"], audio.length),
      })
      const { say } = yield* first
      const begun = yield* say(audio)
      expect(begun.segments[0]!.text).toBe(" A")
      expect(begun.previousTokens).toEqual(["▁A", "<0xE4>", "<0xBD>"].map(idOf))
      const previousTokens = begun.previousTokens
      const next = yield* load({ seed: 1, patch: scripted(promptOf("en"), ["<0xA0>", "b"], audio.length) })
      expect((yield* next.say(audio, { previousTokens })).segments[0]!.text).toBe("你b")
      const other = yield* load({
        seed: 1,
        patch: scripted(promptOf("en"), ["b", "<0xA0>", "c"], audio.length),
      })
      expect((yield* other.say(audio, { previousTokens })).segments[0]!.text).toBe(" bc")
    }),
  )

  it.effect("cuts where it is quiet when audio follows, and never takes more than 35 s", () =>
    Effect.gen(function* () {
      const { say } = yield* load({ seed: 2, endBias: 30 })
      const long = Float32Array.from({ length: 40 * 16_000 }, (_, i) =>
        i >= 33 * 16_000 && i < 33.2 * 16_000 ? 0 : Math.sin(i / 9),
      )
      for (const more of [{ last: true }, { last: false }]) {
        const heard = yield* say(long, more)
        expect(heard.consumedSamples / 16_000).toBeGreaterThan(33)
        expect(heard.consumedSamples / 16_000).toBeLessThan(33.2)
      }
      expect((yield* say(long.subarray(0, 35 * 16_000))).consumedSamples).toBe(35 * 16_000)
      expect(yield* say(new Float32Array(40))).toMatchObject({ consumedSamples: 40, segments: [] })
    }),
  )

  it.effect("breaks out of a loop", () =>
    Effect.gen(function* () {
      const { say } = yield* load({
        seed: 4,
        patch: (table) => {
          for (const row of table) {
            row.fill(-12)
            row[idOf("a")] = 30
          }
        },
      })
      expect((yield* say(audio)).tokens).toHaveLength(8)
    }),
  )

  it.effect("samples above temperature 0, the same each time", () =>
    Effect.gen(function* () {
      const { say } = yield* load({ seed: 1 })
      const once = yield* say(audio, { temperature: 1 })
      expect((yield* say(audio, { temperature: 1 })).tokens).toEqual(once.tokens)
      expect(once.tokens).not.toEqual((yield* say(audio)).tokens)
    }),
  )

  it.effect("requests side by side say what they say alone", () =>
    Effect.gen(function* () {
      const { say } = yield* load({ seed: 3 })
      const requests = [
        say(audio),
        say(audio.subarray(0, 9000)),
        say(audio, { language: "de" }),
        say(audio, { language: "zh", temperature: 0.5 }),
      ]
      const alone = yield* Effect.all(requests)
      const together = yield* Effect.all(requests, { concurrency: "unbounded" })
      expect(together).toEqual(alone)
    }),
  )

  it.effect("refuses folders that lack a role or a token", () =>
    Effect.gen(function* () {
      const { spec } = yield* makeToy({ seed: 1 })
      const refused = (changed: EngineSpec) => Effect.flip(Effect.scoped(cohereHfOnnx.acquire(changed)))
      for (const role of Object.keys(spec.files)) {
        const { [role]: _, ...files } = spec.files
        expect(yield* refused({ ...spec, files })).toMatchObject({ reason: "LoadFailed", field: role })
      }
      const swapped = { ...spec.files, decoder: spec.files.encoder! }
      expect(yield* refused({ ...spec, files: swapped })).toMatchObject({ reason: "LoadFailed" })
    }),
  )
})
