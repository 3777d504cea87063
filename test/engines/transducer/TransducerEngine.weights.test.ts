// The engine on exports in the published layouts whose weights really hear tones: its tokens against a loop that runs the same graphs by itself,
// its words and times against what was played, and what a load refuses.
import { readFileSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { InferenceSession, Tensor } from "onnxruntime-node"
import { s16ToF32 } from "#domain/audio/Audio.ts"
import type { EngineSpec, TranscribeRequest, TranscriptionEngine } from "#engines/protocol/Engine.ts"
import * as NemoMel from "#engines/shared/listening/NemoMel.ts"
import * as KaldiFbank from "#engines/transducer/features/KaldiFbank.ts"
import { transducerOnnx } from "#engines/transducer/TransducerEngine.ts"
import {
  endOf,
  randomTones,
  type SpokenTone,
  type ToneEars,
  type ToneLayout,
  type ToneOptions,
  toneAudio,
  toneEars,
  toneWords,
} from "../../support/engines/ToneEars.ts"
import { isLong, runs } from "../../support/groups/Runs.ts"
import { collector, request, textOf } from "../whisper/support/demoModel.ts"

const rateHz = 16_000

const makeEars = (options: ToneOptions) =>
  Effect.acquireRelease(
    Effect.sync(() => toneEars(options)),
    ({ folder }) => Effect.sync(() => rmSync(folder, { recursive: true })),
  )

const load = Effect.fnUntraced(function* (options: ToneOptions) {
  const ears = yield* makeEars(options)
  const engine = (yield* transducerOnnx.acquire(ears.spec)) as TranscriptionEngine
  const say = Effect.fnUntraced(function* (samples: Float32Array, more: Partial<TranscribeRequest> = {}) {
    const out = collector()
    const end = yield* engine.transcribe(request(samples, { language: undefined, ...more }), out)
    return {
      ...end,
      segments: out.segments,
      text: textOf(out.segments),
      tokens: out.segments.flatMap(({ tokens }) => tokens),
    }
  })
  return { ears, engine, say }
})

/** What was played, in lower case without marks. */
const wordsOf = (tones: ReadonlyArray<SpokenTone>) => tones.map(({ word }) => toneWords[word]!)
const plainWords = (text: string) =>
  text
    .toLowerCase()
    .replaceAll("!", "")
    .split(" ")
    .filter((word) => word !== "")

const spoken = (tones: ReadonlyArray<SpokenTone>, seed = 1) =>
  s16ToF32(toneAudio(tones, endOf(tones) + 0.5, seed))

// ------------------------------------------------------------ a loop of its own

const open = (ears: ToneEars, role: string) =>
  InferenceSession.create(ears.spec.files[role]!, { logSeverityLevel: 3 })
const data = (tensor: Tensor) => Array.from(tensor.data as Float32Array)
const i64 = (values: ReadonlyArray<number>, dims: ReadonlyArray<number>) =>
  new Tensor("int64", BigInt64Array.from(values, BigInt), dims)
const i32 = (values: ReadonlyArray<number>, dims: ReadonlyArray<number>) =>
  new Tensor("int32", Int32Array.from(values), dims)
const f32 = (values: ReadonlyArray<number>, dims: ReadonlyArray<number>) =>
  new Tensor("float32", Float32Array.from(values), dims)
const zeros = (...dims: ReadonlyArray<number>) =>
  f32(new Array(dims.reduce((a, b) => a * b, 1)).fill(0), dims)
const largest = (values: ReadonlyArray<number>) => values.indexOf(Math.max(...values))

/** Greedy tokens of a whole recording on layout "parakeet-rs", all of it in one pass over features that were made at once. */
const fusedReference = async (ears: ToneEars, samples: Float32Array, shift: number) => {
  const [encoder, decoder] = [await open(ears, "encoder"), await open(ears, "decoder")]
  // Half a second of silence is heard behind the audio.
  const chunks = Math.ceil((samples.length + 8_000) / (shift * 160))
  const padded = new Float32Array(chunks * shift * 160 + 40)
  padded.set(samples)
  const mel = await Effect.runPromise(
    Effect.scoped(
      Effect.map(
        NemoMel.make({
          melBins: 128,
          rateHz,
          hopSamples: 160,
          fftSize: 512,
          windowSamples: 400,
          preemphasis: 0.97,
        }),
        (made) => made.frames(padded, 0, chunks * shift),
      ),
    ),
  )
  const at = (frame: number, bin: number) => (frame < 0 ? 0 : mel[frame * 128 + bin]!)
  let caches: Record<string, Tensor> = {
    cache_last_channel: zeros(1, 1, 4, 8),
    cache_last_time: zeros(1, 1, 8, 8),
    cache_last_channel_len: i64([0], [1]),
  }
  const blank = ears.pieces.length - 1
  let states: ReadonlyArray<Tensor> = [zeros(1, 1, 8), zeros(1, 1, 8)]
  let last = blank
  const tokens: Array<number> = []
  const W = shift + 9
  for (let chunk = 0; chunk < chunks; chunk++) {
    const window: Array<number> = []
    for (let bin = 0; bin < 128; bin++)
      for (let i = 0; i < W; i++) window.push(at(chunk * shift - 9 + i, bin))
    const out = await encoder.run({
      processed_signal: f32(window, [1, 128, W]),
      processed_signal_length: i64([W], [1]),
      ...caches,
    })
    caches = {
      cache_last_channel: out.cache_last_channel_next!,
      cache_last_time: out.cache_last_time_next!,
      cache_last_channel_len: out.cache_last_channel_len_next!,
    }
    const frames = data(out.encoded!)
    const n = shift / 8
    for (let t = 0; t < n; t++) {
      const column = Array.from({ length: 8 }, (_, i) => frames[i * n + t]!)
      for (let k = 0; k < 10; k++) {
        const scored = await decoder.run({
          encoder_outputs: f32(column, [1, 8, 1]),
          targets: i32([last], [1, 1]),
          target_length: i32([1], [1]),
          input_states_1: states[0]!,
          input_states_2: states[1]!,
        })
        const token = largest(data(scored.outputs!))
        if (token === blank) break
        tokens.push(token)
        last = token
        states = [scored.output_states_1!, scored.output_states_2!]
      }
    }
  }
  return tokens
}

const zipformerReference = async (ears: ToneEars, samples: Float32Array) => {
  const [encoder, decoder, joiner] = [
    await open(ears, "encoder"),
    await open(ears, "decoder"),
    await open(ears, "joiner"),
  ]
  const chunks = Math.ceil((samples.length + 16_000) / 5_120)
  const padded = new Float32Array(chunks * 5_120 + 2_200)
  padded.set(samples)
  const fbank = await Effect.runPromise(
    Effect.scoped(Effect.map(KaldiFbank.make(80), (made) => made.frames(padded, 0, chunks * 32 + 13))),
  )
  let caches: Record<string, Tensor> = {
    cached_key_0: zeros(4, 1, 8),
    embed_states: zeros(1, 8, 1, 1),
    processed_lens: i64([0], [1]),
  }
  let context = [-1, 0]
  const tokens: Array<number> = []
  for (let chunk = 0; chunk < chunks; chunk++) {
    const x = Array.from(fbank.subarray(chunk * 32 * 80, (chunk * 32 + 45) * 80))
    const out = await encoder.run({ x: f32(x, [1, 45, 80]), ...caches })
    caches = Object.fromEntries(Object.keys(caches).map((name) => [name, out[`new_${name}`]!]))
    const frames = data(out.encoder_out!)
    for (let t = 0; t < 8; t++) {
      const predicted = await decoder.run({ y: i64(context, [1, 2]) })
      const joined = await joiner.run({
        encoder_out: f32(frames.slice(t * 8, t * 8 + 8), [1, 8]),
        decoder_out: predicted.decoder_out!,
      })
      const token = largest(data(joined.logit!))
      if (token < 2) continue
      tokens.push(token)
      context = [context[1]!, token]
    }
  }
  return tokens
}

// ------------------------------------------------------------ tests

const layouts: ReadonlyArray<ToneLayout> = ["genai", "parakeet-rs", "sherpa", "tdt", "zipformer"]

describe("transducer-onnx", () => {
  it.effect("hears each layout: words, marks of the predictor, and times of the words", () =>
    Effect.gen(function* () {
      for (const layout of layouts) {
        const { say } = yield* load({ layout, options: { pieceSeconds: 60 } })
        const errors: Array<number> = []
        for (const seed of [1, 2].slice(0, runs(1, 2))) {
          const tones = randomTones(24, seed)
          const heard = yield* say(spoken(tones, seed), { words: true })
          expect([layout, plainWords(heard.text)]).toEqual([layout, wordsOf(tones)])
          const words = heard.segments.flatMap(({ words = [] }) => words)
          expect(words.map(({ word }) => word).join(" ")).toBe(heard.text)
          words.forEach(({ end, start }, i) => {
            expect(end).toBeGreaterThan(start)
            if (i > 0) expect(start).toBeGreaterThanOrEqual(words[i - 1]!.start)
            errors.push(Math.abs(start - tones[i]!.start) * 1_000)
          })
        }
        errors.sort((a, b) => a - b)
        const part = (p: number) => errors[Math.floor(p * (errors.length - 1))]!
        console.log(
          `${layout}: word starts, median ${part(0.5).toFixed(0)} ms, p95 ${part(0.95).toFixed(0)} ms`,
        )
        expect(part(0.5)).toBeLessThanOrEqual(40)
        expect(part(0.95)).toBeLessThanOrEqual(100)
      }
    }),
  )

  it.effect("gives the tokens of a loop over the same graphs that keeps everything by itself", () =>
    Effect.gen(function* () {
      for (const [chunkMs, seed] of [
        ...([[160, 5]] as const),
        ...(isLong
          ? ([
              [80, 4],
              [560, 6],
              [1_120, 7],
            ] as const)
          : []),
      ]) {
        const { ears, say } = yield* load({ layout: "parakeet-rs", chunkMs, options: { pieceSeconds: 60 } })
        const audio = spoken(randomTones(20, seed), seed)
        const expected = yield* Effect.promise(() => fusedReference(ears, audio, chunkMs / 10))
        expect(expected.length).toBeGreaterThan(30)
        expect((yield* say(audio)).tokens).toEqual(expected)
      }
      const { ears, say } = yield* load({ layout: "zipformer", options: { pieceSeconds: 60 } })
      const audio = spoken(randomTones(20, 8), 8)
      const expected = yield* Effect.promise(() => zipformerReference(ears, audio))
      expect(expected.length).toBeGreaterThan(30)
      expect((yield* say(audio)).tokens).toEqual(expected)
    }),
  )

  it.effect("three streaming layouts of one network say the same", () =>
    Effect.gen(function* () {
      const audio = spoken(randomTones(30, 9))
      const texts: Array<string> = []
      for (const layout of ["genai", "parakeet-rs", "sherpa"] as const)
        texts.push((yield* (yield* load({ layout })).say(audio, { last: true })).text)
      expect(texts[1]).toBe(texts[0])
      expect(texts[2]).toBe(texts[0])
      expect(texts[0]).toMatch(/^[A-Z]\w+ \w+ \w+ \w+ \w+! [A-Z]/)
    }),
  )

  it.effect("silence is an empty text, and audio without a frame is nothing", () =>
    Effect.gen(function* () {
      for (const layout of layouts) {
        const { say } = yield* load({ layout })
        expect(yield* say(new Float32Array(3 * rateHz))).toMatchObject({
          text: "",
          consumedSamples: 3 * rateHz,
        })
        expect(yield* say(new Float32Array(100))).toMatchObject({ text: "", consumedSamples: 100 })
      }
    }),
  )

  it.effect("a language goes to the encoder as its number, and an unknown one is refused", () =>
    Effect.gen(function* () {
      const { engine, say } = yield* load({ layout: "genai", options: { languages: ["en", "de"] } })
      expect(engine.facts).toMatchObject({ languages: ["en", "de"] })
      const tones = [0, 3, 7].map((word, i) => ({ word, start: 0.3 + i, seconds: 0.3 }))
      expect((yield* say(spoken(tones), { language: "en" })).text).toBe("Amber dover hazel")
      expect(yield* say(spoken(tones), { language: "de" })).toMatchObject({
        text: "Birch ember amber",
        language: "de",
      })
      expect(yield* say(spoken(tones))).toMatchObject({ text: "Amber dover hazel", previousTokens: [-1] })
      // What follows a piece whose language was not requested is detected again, whatever the caller passes on.
      const again = yield* say(spoken(tones), { language: "de", previousTokens: [-1] })
      expect(again.text).toBe("Amber dover hazel")
      const error = yield* Effect.flip(say(spoken(tones), { language: "ru" }))
      expect(error).toMatchObject({ reason: "InvalidInput", field: "language" })
      const plain = yield* load({ layout: "sherpa" })
      expect(yield* Effect.flip(plain.say(spoken(tones), { language: "de" }))).toMatchObject({
        reason: "InvalidInput",
      })
    }),
  )

  it.effect("a long recording is heard in windows: no word is lost or said twice at a cut", () =>
    Effect.gen(function* () {
      // One that keeps its state from window to window, and the one that does not.
      for (const layout of isLong ? layouts : (["sherpa", "tdt"] as const)) {
        const { engine, say } = yield* load({ layout, options: { pieceSeconds: layout === "tdt" ? 30 : 8 } })
        // Several windows of each, and no more.
        const tones = randomTones(layout === "tdt" ? 80 : 40, 11)
        const audio = spoken(tones)
        const window = Math.floor(engine.facts.windowSeconds * rateHz)
        const words: Array<{ word: string; start: number }> = []
        let at = 0
        let previousTokens: ReadonlyArray<number> = []
        let pieces = 0
        while (at < audio.length) {
          const samples = audio.subarray(at, at + window)
          const heard = yield* say(samples, {
            last: at + window >= audio.length,
            words: true,
            previousTokens,
          })
          for (const segment of heard.segments)
            for (const { start, word } of segment.words ?? [])
              words.push({ word, start: start + at / rateHz })
          at += heard.consumedSamples
          ;({ previousTokens } = heard)
          pieces++
        }
        expect(pieces).toBeGreaterThan(2)
        expect([layout, plainWords(words.map(({ word }) => word).join(" "))]).toEqual([
          layout,
          wordsOf(tones),
        ])
        const errors = words.map(({ start }, i) => Math.abs(start - tones[i]!.start)).sort((x, y) => x - y)
        expect(errors[Math.floor(0.95 * errors.length)]).toBeLessThanOrEqual(0.1)
        // A word on which a piece is cut is heard behind the cut.
        expect(errors.at(-1)).toBeLessThan(0.4)
      }
    }),
  )

  it.effect("requests side by side say what they say alone", () =>
    Effect.gen(function* () {
      for (const layout of ["sherpa", "tdt"] as const) {
        const { say } = yield* load({ layout })
        const requests = [1, 2, 3, 4].map((seed) => say(spoken(randomTones(12, seed)), { stream: seed }))
        const alone = yield* Effect.all(requests)
        expect(yield* Effect.all(requests, { concurrency: "unbounded" })).toEqual(alone)
      }
    }),
  )
})

describe("a load of transducer-onnx refuses", () => {
  const refused = (spec: EngineSpec) =>
    Effect.flip(Effect.scoped(transducerOnnx.acquire(spec))).pipe(
      Effect.map(({ detail, field, reason }) => `${reason} ${field}: ${detail}`),
    )
  const replaced = (ears: ToneEars, role: string, change: (text: string) => string): EngineSpec => {
    const path = join(ears.folder, `changed-${role}.txt`)
    writeFileSync(path, change(readFileSync(ears.spec.files[role]!, "utf8")))
    return { ...ears.spec, files: { ...ears.spec.files, [role]: path } }
  }

  it.effect("mixed and cut exports, another sample rate, a vocabulary that does not fit", () =>
    Effect.gen(function* () {
      const genai = yield* makeEars({ layout: "genai" })
      const sherpa = yield* makeEars({ layout: "sherpa" })
      const rs = yield* makeEars({ layout: "parakeet-rs" })
      const tdt = yield* makeEars({ layout: "tdt" })
      const zipformer = yield* makeEars({ layout: "zipformer" })
      const said = function* (spec: EngineSpec, pattern: RegExp) {
        expect(yield* refused(spec)).toMatch(pattern)
      }
      const files = (spec: EngineSpec, more: Record<string, string | undefined>): EngineSpec => {
        const all = { ...spec.files, ...more }
        return {
          ...spec,
          files: Object.fromEntries(
            Object.entries(all).flatMap(([role, path]) => (path === undefined ? [] : [[role, path]])),
          ),
        }
      }
      yield* said(
        files(sherpa.spec, { joiner: undefined }),
        /^LoadFailed joiner: decoder\.int8\.onnx takes no encoder output/,
      )
      yield* said(
        files(sherpa.spec, { encoder: sherpa.spec.files.decoder }),
        /^LoadFailed encoder: .* none of the layouts/,
      )
      yield* said(
        files(sherpa.spec, { decoder: zipformer.spec.files.joiner }),
        /^LoadFailed decoder: .* no input targets/,
      )
      yield* said(
        files(sherpa.spec, { joiner: sherpa.spec.files.encoder }),
        /^LoadFailed joiner: .* a joiner takes/,
      )
      yield* said(
        files(sherpa.spec, { encoder: undefined }),
        /^LoadFailed encoder: the model entry names no file/,
      )
      yield* said(
        files(zipformer.spec, { vocabulary: undefined }),
        /^LoadFailed vocabulary: the model entry names no file/,
      )
      yield* said(
        files(zipformer.spec, { vocabulary: sherpa.spec.files.vocabulary }),
        /^LoadFailed vocabulary: its piece <blk> has the id 26/,
      )
      yield* said(
        replaced(genai, "processor", (text) => text.replace("16000", "8000")),
        /^LoadFailed processor: sample_rate is 8000; .* 16000 only/,
      )
      yield* said(
        replaced(genai, "processor", (text) => text.replace("128", "80")),
        /^LoadFailed encoder: .*128 mel bins.*says 80/,
      )
      yield* said(
        replaced(genai, "config", (text) => text.replace("8960", "1280")),
        /^LoadFailed encoder: .*chunks of 560 ms.*80/,
      )
      yield* said(
        replaced(genai, "config", (text) => text.replace(/"blank_id":\d+/, '"blank_id":3')),
        /^LoadFailed config: blank_id is 3/,
      )
      yield* said(
        replaced(genai, "config", (text) => text.slice(0, 40)),
        /^LoadFailed config: .*SyntaxError/,
      )
      yield* said(
        replaced(rs, "vocabulary", (text) => text.split("\n").slice(0, 8).join("\n")),
        /^LoadFailed vocabulary: it has 8 pieces, the graphs score 27/,
      )
      yield* said(
        replaced(tdt, "vocabulary", (text) => `${text}more ${tdt.pieces.length}\n`),
        /^LoadFailed vocabulary: its piece <blk>/,
      )
      yield* said(
        replaced(rs, "vocabulary", (text) => text.replace("▁Amber 1\n", "▁Amber 1\nzzz 27\n")),
        /^LoadFailed vocabulary: it has 28 pieces, the graphs score 27/,
      )
      yield* said(
        { ...rs.spec, options: { chunkMs: 80 } },
        /^LoadFailed encoder: .*chunks of 560 ms, and chunkMs is 80/,
      )
      yield* said({ ...rs.spec, options: { languages: [] } }, /^LoadFailed options: /)
      const cut = join(rs.folder, "cut.onnx")
      const whole = readFileSync(rs.spec.files.encoder!)
      writeFileSync(cut, whole.subarray(0, whole.length >> 1))
      yield* said(files(rs.spec, { encoder: cut }), /^LoadFailed .*cut\.onnx/)
    }),
  )
})
