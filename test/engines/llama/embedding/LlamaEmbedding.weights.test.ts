// The adapter of embedding models on generated weights of BERT's shape and on a decoder, compared with node-llama-cpp's own
// embedding context on the same files.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import fc from "fast-check"
import { afterAll, beforeAll } from "vitest"
import { openLibrary } from "#engines/llama/native/Library.ts"
import {
  cosine,
  decoderModel,
  dot,
  openEmbedding,
  vectorsOf,
  writeBert,
} from "../../../support/engines/EmbeddingModels.ts"
import { CollectingOutlet } from "../../../support/engines/EngineHarness.ts"
import { temporaryDir } from "../../../support/process/TemporaryDir.ts"

const folder = temporaryDir()
afterAll(folder.remove)

let bert = ""
beforeAll(async () => {
  bert = await writeBert(folder.path)
})

const texts = [
  "the robot tells a story",
  "a fox",
  "first we say hello, then we tell you about the time",
  "Bonjour, é ü!",
  "日本",
]

/** The vectors of node-llama-cpp's own embedding context. */
const oracle = async (path: string, inputs: ReadonlyArray<string>) => {
  const llama = await openLibrary({ gpu: "off", threads: 1, logger: () => {} })
  const model = await llama.loadModel({ modelPath: path })
  const context = await model.createEmbeddingContext({ contextSize: 64 })
  const vectors: Array<ReadonlyArray<number>> = []
  for (const input of inputs) vectors.push((await context.getEmbeddingFor(input)).vector)
  await context.dispose()
  await model.dispose()
  await llama.dispose()
  return vectors
}

describe("a model of BERT's shape", () => {
  it.live("gives the vectors of node-llama-cpp, with length 1", () =>
    Effect.gen(function* () {
      const engine = yield* openEmbedding(bert)
      expect(engine.facts).toMatchObject({ contextTokens: 64, dimensions: 64 })
      const vectors = yield* vectorsOf(engine, texts)
      const expected = yield* Effect.promise(() => oracle(bert, texts))
      expect(vectors.length).toBe(texts.length)
      for (const [at, vector] of vectors.entries()) {
        expect(vector.length).toBe(64)
        expect(dot(vector, vector)).toBeCloseTo(1, 5)
        expect(cosine(vector, expected[at]!)).toBeGreaterThan(0.99999)
      }
      // The vectors of different texts differ, so the comparison can fail.
      expect(cosine(vectors[0]!, vectors[1]!)).toBeLessThan(0.99)
    }).pipe(Effect.scoped),
  )

  it.live("gives an input the same vector alone and among others, in the order of the inputs", () =>
    Effect.gen(function* () {
      const engine = yield* openEmbedding(bert, { batchTokens: 32 })
      const words = "the of and to in is that for it as was with be by on".split(" ")
      const random = fc.sample(
        fc.array(fc.constantFrom(...words), { minLength: 1, maxLength: 20 }).map((list) => list.join(" ")),
        { numRuns: 100, seed: 7 },
      )
      const together = yield* vectorsOf(engine, random)
      expect(together.length).toBe(random.length)
      for (const [at, text] of random.entries()) {
        if (at % 5 !== 0) continue
        const [alone] = yield* vectorsOf(engine, [text])
        expect(cosine(alone!, together[at]!)).toBeGreaterThan(0.99999)
      }
    }).pipe(Effect.scoped),
  )

  it.live("pools as the file says, and refuses a file whose metadata names no pooling", () =>
    Effect.gen(function* () {
      const paths = yield* Effect.promise(() =>
        Promise.all((["cls", "none", "rank"] as const).map((pooling) => writeBert(folder.path, { pooling }))),
      )
      const [cls = "", none = "", rank = ""] = paths
      const first = yield* vectorsOf(yield* openEmbedding(cls), texts)
      const mean = yield* vectorsOf(yield* openEmbedding(bert), texts)
      const chosen = yield* vectorsOf(yield* openEmbedding(none, { pooling: "mean" }), texts)
      expect(cosine(first[0]!, mean[0]!)).toBeLessThan(0.999)
      expect(cosine(chosen[0]!, mean[0]!)).toBeGreaterThan(0.99999)
      expect((yield* Effect.flip(openEmbedding(none))).detail).toContain("names no pooling in its metadata")
      expect((yield* Effect.flip(openEmbedding(rank))).detail).toContain("is a reranking model")
    }).pipe(Effect.scoped),
  )

  it.live("takes token ids as they stand, and refuses those that it does not have", () =>
    Effect.gen(function* () {
      const engine = yield* openEmbedding(bert)
      // [CLS] and [SEP] around the letter a.
      const [text, ids] = yield* Effect.all([vectorsOf(engine, ["a"]), vectorsOf(engine, [[2, 5, 3]])])
      expect(cosine(text[0]!, ids[0]!)).toBeGreaterThan(0.99999)
      const unknown = yield* Effect.flip(vectorsOf(engine, ["a", [2, 4_000]]))
      expect(unknown).toMatchObject({ reason: "InvalidInput", field: "input[1]" })
    }).pipe(Effect.scoped),
  )

  it.live("refuses an input that is longer than its context, and more dimensions than it has", () =>
    Effect.gen(function* () {
      const engine = yield* openEmbedding(bert)
      const long = yield* Effect.flip(vectorsOf(engine, ["a", "the ".repeat(63)]))
      expect(long).toMatchObject({
        reason: "PromptTooLong",
        field: "input[1]",
        promptTokens: 65,
        contextTokens: 64,
      })
      expect((yield* vectorsOf(engine, ["the ".repeat(62)])).length).toBe(1)
      const wide = yield* Effect.flip(vectorsOf(engine, ["a"], { dimensions: 65 }))
      expect(wide).toMatchObject({ reason: "InvalidInput", field: "dimensions" })
      expect(wide.detail).toContain("65")
      expect(wide.detail).toContain("64")
    }).pipe(Effect.scoped),
  )

  it.live(
    "serves a small request while a large one runs, and goes on after the large one was cancelled",
    () =>
      Effect.gen(function* () {
        const engine = yield* openEmbedding(bert, { batchTokens: 16 })
        const large = new CollectingOutlet<"embedding">()
        const inputs = Array.from({ length: 2_000 }, () => "the of and to in is that for")
        const fiber = yield* Effect.forkChild(engine.embed({ inputs, format: "base64" }, large))
        while (large.units.length === 0) yield* Effect.sleep(1)
        const before = large.units.length
        expect((yield* vectorsOf(engine, ["a fox"])).length).toBe(1)
        // Some evaluations of the large one, not all 2,000 of its inputs.
        expect(large.units.length - before).toBeLessThan(500)
        yield* Fiber.interrupt(fiber)
        const after = large.units.length
        expect((yield* vectorsOf(engine, texts)).length).toBe(texts.length)
        expect(large.units.length).toBe(after)
        expect(after).toBeLessThan(2_000)
      }).pipe(Effect.scoped),
  )

  it.live("waits while its reader is paused, and leaves nothing out", () =>
    Effect.gen(function* () {
      const engine = yield* openEmbedding(bert, { batchTokens: 16 })
      const out = new CollectingOutlet<"embedding">()
      out.onPush = () => out.pause()
      const inputs = texts.flatMap((text) => [text, text])
      const fiber = yield* Effect.forkChild(engine.embed({ inputs, format: "float" }, out))
      let resumed = 0
      while (fiber.pollUnsafe() === undefined) {
        yield* Effect.sleep(1)
        if (!out.paused()) continue
        out.resume()
        resumed++
      }
      expect(Exit.isSuccess(yield* Fiber.await(fiber))).toBe(true)
      expect(resumed).toBeGreaterThan(1)
      expect(out.units.flatMap((unit) => unit.texts).length).toBe(inputs.length)
    }).pipe(Effect.scoped),
  )
})

describe("a decoder", () => {
  it.live("needs a pooling in its options, and gives an input the same vector alone and among others", () =>
    Effect.gen(function* () {
      const path = decoderModel()
      expect((yield* Effect.flip(openEmbedding(path))).detail).toContain("options.pooling")
      for (const pooling of ["last", "mean"]) {
        const engine = yield* openEmbedding(path, { pooling, batchTokens: 64 })
        const together = yield* vectorsOf(engine, texts)
        for (const [at, text] of texts.entries()) {
          const [alone] = yield* vectorsOf(engine, [text])
          expect(cosine(alone!, together[at]!)).toBeGreaterThan(0.99999)
        }
        expect(cosine(together[0]!, together[1]!)).toBeLessThan(0.999)
      }
    }).pipe(Effect.scoped),
  )
})
