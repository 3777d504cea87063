// Replies about pictures are those of llama.cpp's own multimodal code: the same prompt and the same greedy tokens, for every
// family, alone and eight at once. Where two tokens are almost equally likely, the processor's instructions decide which of them is the
// greedy one: the answers were recorded with AVX-512. The recorded answers and how to make them again: bench/pictures/README.md.
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll } from "vitest"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import type { TextEngine } from "#engines/protocol/Engine.ts"
import type { SampledLogprob } from "#engines/protocol/Text.ts"
import { cases, type PictureCase, replyTokens } from "../../../../bench/pictures/Cases.ts"
import { bytesOf } from "../../../../bench/sizes/text/Vocabulary.ts"
import { visionVocabulary } from "../../../../bench/sizes/vision/VisionWeights.ts"
import { generateText, openText } from "../../../support/engines/EngineHarness.ts"
import { temporaryDir } from "../../../support/process/TemporaryDir.ts"
import { pictureRequest, toyFiles } from "./Toys.ts"

const folder = temporaryDir()
afterAll(folder.remove)

interface Answer {
  readonly name: string
  /** Tokens; a number of rows is negative. */
  readonly prompt: ReadonlyArray<number>
  readonly tokens: ReadonlyArray<number>
}

const answersOf = (size: string): ReadonlyArray<Answer> => {
  const path = new URL(`./oracle/${size}.json`, import.meta.url)
  return (JSON.parse(readFileSync(path, "utf8")) as { readonly answers: ReadonlyArray<Answer> }).answers
}

const vocabulary = visionVocabulary()

type Bytes = ReadonlyArray<ReadonlyArray<number>>

/** The end of a message is not part of a reply. */
const bytesOfTokens = (tokens: ReadonlyArray<number>): Bytes =>
  tokens
    .filter((token) => token !== vocabulary.endOfMessage)
    .map((token) => [...bytesOf(vocabulary.tokens[token] ?? "")])

const ask = (engine: TextEngine, { content }: PictureCase) =>
  Effect.map(
    generateText(engine, pictureRequest(content, { maxTokens: replyTokens, logprobs: 2 })),
    ({ deltas, end, started }) => ({
      started,
      end,
      tokens: deltas.flatMap(({ detail }) => detail?.logprobs ?? []),
    }),
  )

/** Two tokens are almost equally likely if their log probabilities differ by less. Without AVX-512 0.07 was the largest difference. */
const tie = 0.1

/** True if the tokens are the recorded ones to the end; false if they leave them at a tie, after which nothing is comparable. */
const isEqual = (name: string, tokens: ReadonlyArray<SampledLogprob>, wanted: Bytes): boolean => {
  for (const [at, bytes] of wanted.entries()) {
    const token = tokens[at]
    if (`${token?.bytes}` === `${bytes}`) continue
    const recorded = token?.top.find((other) => `${other.bytes}` === `${bytes}`)
    const missing = (token?.logprob ?? 0) - (recorded?.logprob ?? Number.NEGATIVE_INFINITY)
    expect({ name, at, missing }).toEqual({ name, at, missing: expect.toSatisfy((by) => by < tie) })
    return false
  }
  return true
}

describe("replies about pictures are llama.cpp's own", () => {
  for (const size of ["toy-qwen", "toy-mlp", "toy-idefics3"] as const)
    it.live(`${size}: 28 prompts with pictures of 25 shapes`, () =>
      Effect.gen(function* () {
        const { mmproj, weights } = yield* Effect.promise(() => toyFiles(folder.path, size))
        const engine = yield* openText(llamaGguf, { weights, mmproj }, { contextTokens: 1024, slots: 8 })
        const answers = answersOf(size)
        const expected = cases.map(({ name }) => answers.find((answer) => answer.name === name)!)
        const alone = []
        for (const one of cases) alone.push(yield* ask(engine, one))
        let equal = 0
        for (const [at, { end, started, tokens: sampled }] of alone.entries()) {
          const { name, prompt, tokens } = expected[at]!
          const rows = prompt.reduce((sum, part) => sum + Math.max(0, -part), 0)
          const promptTokens = prompt.filter((part) => part >= 0).length + rows
          expect({ name, ...started }).toMatchObject({ name, promptTokens, imageTokens: rows })
          expect({ name, ...end }).toMatchObject({ name, promptTokens, imageTokens: rows })
          if (isEqual(name, sampled, bytesOfTokens(tokens))) equal++
        }
        const together = yield* Effect.all(
          cases.map((one) => ask(engine, one)),
          { concurrency: 8 },
        )
        for (const [at, { tokens: sampled }] of together.entries()) {
          const { name, tokens } = expected[at]!
          if (isEqual(name, sampled, bytesOfTokens(tokens))) equal++
        }
        console.info(`${size}: ${equal} of ${2 * cases.length} replies are equal to the end`)
        // A guess. Without AVX-512 52, 52 and 48 of 56 were; with it all.
        expect(equal).toBeGreaterThanOrEqual(cases.length)
      }).pipe(Effect.scoped),
    )
})
