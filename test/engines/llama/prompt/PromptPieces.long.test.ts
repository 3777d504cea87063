// Prompts that would overflow a native pre-tokenizer's stack are cut before it, and the tokens of ordinary prompts stay
// the same.
import { mkdtempSync, rmSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import fc from "fast-check"
import type { LlamaModel } from "node-llama-cpp"
import { afterAll, describe, expect, it } from "vitest"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import { openLibrary } from "#engines/llama/native/Library.ts"
import { longestRun, piecesOf } from "#engines/llama/prompt/PromptPieces.ts"
import { safeTokenizer } from "#engines/llama/prompt/SafeTokenizer.ts"
import { generateText, openText, textRequest } from "../../../support/engines/EngineHarness.ts"
import { repadded } from "../../../support/engines/RepadGguf.ts"
import { growthOfTime } from "../../../support/process/GrowthOfTime.ts"

const weights = fileURLToPath(import.meta.resolve("../../../../models/llama-demo/llama-demo-Q8_0.gguf"))
const folder = mkdtempSync(join(tmpdir(), "edgewise-pieces-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const withModel = async (pre: string, use: (model: LlamaModel) => void): Promise<void> => {
  const path = join(folder, `${pre}.gguf`)
  repadded(weights, path, pre)
  const llama = await openLibrary({ gpu: "off", threads: 1, logger: () => {} })
  try {
    const model = await llama.loadModel({ modelPath: path, gpuLayers: 0 })
    use(model)
  } finally {
    await llama.dispose()
  }
}

const isSpace = (character: string): boolean => /\s/.test(character)

describe("pieces of a text", () => {
  it("are the text, without a longer run in any and without half a character", () => {
    const text = fc
      .array(fc.tuple(fc.constantFrom("a", " ", "\n", "é", "，", "日", "😀", "1", "\u2003"), fc.nat(40)))
      .map((runs) => runs.map(([character, count]) => character.repeat(count)).join(""))
    fc.assert(
      fc.property(text, fc.integer({ min: 4, max: 60 }), (whole, bound) => {
        const pieces = piecesOf(whole, bound)
        expect(pieces.join("")).toBe(whole)
        for (const piece of pieces) {
          expect(piece.isWellFormed()).toBe(true)
          let run = 0
          for (let i = 0; i < piece.length; i++) {
            run = i > 0 && isSpace(piece.charAt(i)) === isSpace(piece.charAt(i - 1)) ? run + 1 : 1
            expect(run).toBeLessThanOrEqual(bound)
          }
        }
      }),
    )
  })

  it("are one for any text whose words are shorter than the bound", () => {
    const words = fc.array(fc.string({ minLength: 1, maxLength: 40 }), { maxLength: 400 })
    fc.assert(
      fc.property(words, (some) => {
        expect(piecesOf(some.map((word) => word.replaceAll(/\s/g, "")).join(" "))).toHaveLength(1)
      }),
    )
  })

  it("take time in proportion to the text, up to 8 MB", () => {
    const pieces = (size: number) => () =>
      expect(piecesOf("a".repeat(size)).length).toBe(Math.ceil(size / longestRun))
    // 16 times the text; 256 times as long would be quadratic.
    expect(growthOfTime(pieces(500_000), pieces(8_000_000))).toBeLessThan(64)
  })
})

const pretokenizers = ["gpt-4o", "tekken", "deepseek-llm", "deepseek-v3", "falcon", "llama-bpe", "qwen2"]

describe.each(pretokenizers)("the tokenizer of a vocabulary like %s", (pre) => {
  // So many, because recursion ends a process only where a text is long enough.
  const length = 300_000
  it(`survives ${length} equal characters of any kind`, () =>
    withModel(pre, (model) => {
      const tokenize = safeTokenizer(model)
      for (const character of ["a", "\n", "日", "!\n", "A", " ", "é", "!", "1", "aA", " \n"]) {
        const text = character.repeat(length / character.length)
        expect([character, model.detokenize(tokenize(text))]).toEqual([character, text])
      }
    }))

  it("gives the whole text's tokens where it could cut at a boundary", () =>
    withModel(pre, (model) => {
      const phrase = fc
        .array(fc.constantFrom("日", "本", "語", "a", "B", "é", "и"), { minLength: 1, maxLength: 9 })
        .map((letters) => letters.join(""))
      const sign = fc.constantFrom("，", "。", "!", "-", ".")
      const text = fc
        .array(fc.tuple(phrase, sign), { minLength: 1, maxLength: 40 })
        .map((parts) => parts.flat().join(""))
      fc.assert(
        fc.property(text, fc.integer({ min: 24, max: 80 }), (whole, bound) => {
          expect(safeTokenizer(model, bound)(whole)).toEqual(model.tokenizer(whole))
        }),
        { numRuns: 60 },
      )
    }))
})

describe("the engine", () => {
  it("refuses prompts that would overflow its tokenizer's stack as what they are: too long", async () => {
    const path = join(folder, "engine.gguf")
    repadded(weights, path, "gpt-4o")
    const run = Effect.gen(function* () {
      const engine = yield* openText(llamaGguf, { weights: path }, { contextTokens: 2048, slots: 1 })
      const long = "a".repeat(35_000)
      for (const request of [
        textRequest(long),
        textRequest({ text: long }),
        // More than any text of so many tokens: only the error message needs a count, estimated from the first part.
        textRequest({ text: "a".repeat(2_000_000) }),
      ]) {
        const error = yield* Effect.flip(generateText(engine, request))
        expect(error.reason).toBe("PromptTooLong")
      }
      return (yield* generateText(engine, textRequest("What is the capital of Italy?"))).text
    })
    expect((await Effect.runPromise(Effect.scoped(run))).length).toBeGreaterThan(0)
  })
})
