// Generated text weights: the engine loads them, prompts have the requested number of tokens, and replies run
// to their limit. Real vocabulary, tiny layers.
import { createHash } from "node:crypto"
import { readdirSync, readFileSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { afterAll } from "vitest"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import { checkGguf } from "#weights/formats/GgufCheck.ts"
import { cachedFile } from "../../bench/sizes/Cache.ts"
import { float16 } from "../../bench/sizes/text/Blocks.ts"
import type { TextShape } from "../../bench/sizes/text/Shapes.ts"
import { writeTextModel } from "../../bench/sizes/text/TextWeights.ts"
import { readWordList, textVocabulary } from "../../bench/sizes/text/Vocabulary.ts"
import { promptOf } from "../../bench/text/sized/Models.ts"
import { generateText, openText, textRequest } from "../support/engines/EngineHarness.ts"
import { inLong } from "../support/groups/Runs.ts"
import { temporaryDir } from "../support/process/TemporaryDir.ts"

const folder = temporaryDir()
afterAll(folder.remove)

const vocabulary = textVocabulary(readWordList(), 1)

const shapeOf = (architecture: TextShape["architecture"]): TextShape => ({
  architecture,
  width: 64,
  layers: 3,
  heads: 2,
  keyValueHeads: 1,
  headWidth: 32,
  feedForward: 128,
})

const written = async (
  name: string,
  architecture: TextShape["architecture"],
  quantisation: "q8_0" | "q4_0",
) => {
  const path = join(folder.path, `${name}.gguf`)
  await writeTextModel(path, { name, shape: shapeOf(architecture), quantisation }, vocabulary)
  return path
}

const hashOf = (path: string): string => createHash("sha256").update(readFileSync(path)).digest("hex")

describe("generated text weights", () => {
  for (const [architecture, quantisation] of [
    ["llama", "q8_0"],
    ["qwen3", "q4_0"],
  ] as const)
    it.live(
      `${architecture} in ${quantisation}: whole prompts, replies to the last allowed token`,
      () =>
        Effect.gen(function* () {
          const path = yield* Effect.promise(() => written(architecture, architecture, quantisation))
          expect(yield* Effect.promise(() => checkGguf(path))).toMatchObject({ architecture, parts: 1 })
          const engine = yield* openText(llamaGguf, { weights: path }, { contextTokens: 512, slots: 1 })
          for (const temperature of [0, 1]) {
            const changes = { maxTokens: 64, sampling: { temperature } }
            const request = textRequest({ text: promptOf(3, 50) }, changes)
            const { deltas, end } = yield* generateText(engine, request)
            expect(end).toEqual({ finishReason: "length", promptTokens: 50, completionTokens: 64 })
            // Every token is text by itself, so each is a chunk of its own.
            expect(deltas.length).toBe(64)
          }
          const chat = textRequest("hello", { maxTokens: 4 })
          expect((yield* generateText(engine, chat)).end.finishReason).toBe("length")
        }).pipe(Effect.scoped),
      inLong,
    )

  it("the same model is the same bytes", async () => {
    const write = async (file: string) => {
      const path = join(folder.path, file)
      await writeTextModel(path, { name: "same", shape: shapeOf("llama"), quantisation: "q4_0" }, vocabulary)
      return hashOf(path)
    }
    expect(await write("one.gguf")).toBe(await write("other.gguf"))
  })

  it("a scale as a 16-bit float is within half a unit of its last place", () => {
    const value = (bits: number) => {
      const exponent = bits >> 10
      const fraction = bits & 1023
      return exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25)
    }
    fc.assert(
      fc.property(fc.double({ min: 2 ** -14, max: 65_000, noNaN: true }), (number) => {
        expect(Math.abs(value(float16(number)) - number) / number).toBeLessThanOrEqual(2 ** -11)
      }),
    )
    expect(value(float16(3.8e-5))).toBeCloseTo(3.8e-5, 7)
  })
})

describe("the folder of generated weights", () => {
  it("runs at the same time get the same whole file, and another recipe another file", async () => {
    const path = join(folder.path, "shared")
    const file = (recipe: number) => ({
      name: "weights",
      ending: ".bin",
      recipe,
      write: async (to: string) => writeFileSync(to, `content ${recipe}`, { flag: "wx" }),
    })
    const paths = await Promise.all([1, 1, 2, 1].map((recipe) => cachedFile(file(recipe), path)))
    expect(new Set(paths).size).toBe(2)
    expect(readFileSync(paths[3]!, "utf8")).toBe("content 1")
    expect(readdirSync(path).length).toBe(2)
  })

  it("a file that cannot be written leaves nothing", async () => {
    const path = join(folder.path, "failed")
    const write = async (to: string) => {
      writeFileSync(to, "half")
      throw new Error("no space left")
    }
    await expect(cachedFile({ name: "a", ending: ".bin", recipe: 1, write }, path)).rejects.toThrow(
      "no space",
    )
    expect(readdirSync(path)).toEqual([])
  })
})
