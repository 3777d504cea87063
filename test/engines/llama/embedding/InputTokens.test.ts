// How much of the inputs of a request for embeddings reaches the native tokenizer.
import { expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { inputTokens } from "#engines/llama/embedding/InputTokens.ts"
import type { Libllama } from "#engines/llama/native/Libllama.ts"

/** A tokenizer of one token for four bytes, and the bytes that it was given. */
const counting = () => {
  let bytes = 0
  const tokenize = (
    _vocabulary: bigint,
    _text: Uint8Array,
    length: number,
    into: Int32Array,
    most: number,
  ) => {
    bytes += length
    const count = Math.ceil(length / 4)
    if (count > most) return -count
    into.fill(1, 0, count)
    return count
  }
  const async = (...parameters: ReadonlyArray<unknown>) => {
    const done = parameters.at(-1) as (error: null, result: number) => void
    done(null, tokenize(...(parameters.slice(0, -1) as unknown as Parameters<typeof tokenize>)))
  }
  const library = { vocabularySize: () => 10, tokenize: Object.assign(tokenize, { async }) }
  return {
    bytes: () => bytes,
    tokensOf: inputTokens({
      library: library as unknown as Libllama,
      vocabulary: 1n,
      isBytePair: true,
      limits: { contextTokens: 2_048, longestText: 2_048 * 64 },
    }),
  }
}

it.effect("an input that cannot fit is refused after its first piece, with both numbers", () =>
  Effect.gen(function* () {
    for (const text of ["word ".repeat(1_600_000), "x".repeat(8e6), " ".repeat(8e6)]) {
      const { bytes, tokensOf } = counting()
      const refused = yield* Effect.flip(tokensOf(["short", text]))
      expect(refused).toMatchObject({
        reason: "PromptTooLong",
        field: "input[1]",
        promptTokens: expect.closeTo(2e6, -4),
        contextTokens: 2_048,
      })
      expect(bytes()).toBeLessThan(20_000)
    }
  }),
)

it.live("many inputs that fit stop at the most tokens of a request", () =>
  Effect.gen(function* () {
    const { bytes, tokensOf } = counting()
    const refused = yield* Effect.flip(tokensOf(Array.from({ length: 1_000 }, () => "word".repeat(2_000))))
    expect(refused).toMatchObject({ reason: "InvalidInput", field: "input" })
    expect(refused.detail).toContain("300000")
    expect(bytes()).toBeLessThan(4 * 310_000)
  }),
)

it.live("an input that fits gives its tokens, also one that was counted first", () =>
  Effect.gen(function* () {
    const { tokensOf } = counting()
    const [tokens] = yield* tokensOf(["wxyz".repeat(2_048)])
    expect(tokens).toHaveLength(2_048)
    const refused = yield* Effect.flip(tokensOf(["wxyz".repeat(2_049)]))
    expect(refused).toMatchObject({ reason: "PromptTooLong", promptTokens: 2_049 })
  }),
)
