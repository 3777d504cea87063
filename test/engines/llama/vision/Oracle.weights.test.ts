// Replies about pictures are those of llama.cpp's own multimodal code: the same prompt and the same greedy tokens, for every
// family, alone and eight at once. The recorded answers and how to make them again: bench/pictures/README.md.
import { readFileSync } from "node:fs"
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import { afterAll } from "vitest"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import type { TextEngine } from "#engines/protocol/Engine.ts"
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

/** The end of a message is not part of a reply. */
const bytesOfTokens = (tokens: ReadonlyArray<number>): ReadonlyArray<ReadonlyArray<number>> =>
  tokens
    .filter((token) => token !== vocabulary.endOfMessage)
    .map((token) => [...bytesOf(vocabulary.tokens[token] ?? "")])

const ask = (engine: TextEngine, { content }: PictureCase) =>
  Effect.map(
    generateText(engine, pictureRequest(content, { maxTokens: replyTokens, logprobs: 0 })),
    ({ deltas, end, started }) => ({
      started,
      end,
      bytes: deltas.flatMap(({ detail }) => (detail?.logprobs ?? []).map(({ bytes }) => bytes)),
    }),
  )

describe("replies about pictures are llama.cpp's own", () => {
  for (const size of ["toy-mlp", "toy-idefics3", "toy-qwen"] as const)
    it.live(`${size}: 28 prompts with pictures of 25 shapes`, () =>
      Effect.gen(function* () {
        const { mmproj, weights } = yield* Effect.promise(() => toyFiles(folder.path, size))
        const engine = yield* openText(llamaGguf, { weights, mmproj }, { contextTokens: 1024, slots: 8 })
        const answers = answersOf(size)
        const expected = cases.map(({ name }) => answers.find((answer) => answer.name === name)!)
        const alone = []
        for (const one of cases) alone.push(yield* ask(engine, one))
        for (const [at, { bytes, end, started }] of alone.entries()) {
          const { name, prompt, tokens } = expected[at]!
          const rows = prompt.reduce((sum, part) => sum + Math.max(0, -part), 0)
          const promptTokens = prompt.filter((part) => part >= 0).length + rows
          expect({ name, ...started }).toMatchObject({ name, promptTokens, imageTokens: rows })
          expect({ name, ...end }).toMatchObject({ name, promptTokens, imageTokens: rows })
          const wanted = bytesOfTokens(tokens)
          expect({ name, bytes: bytes.slice(0, wanted.length) }).toEqual({ name, bytes: wanted })
        }
        const together = yield* Effect.all(
          cases.map((one) => ask(engine, one)),
          { concurrency: 8 },
        )
        for (const [at, { bytes }] of together.entries()) {
          const { name, tokens } = expected[at]!
          const wanted = bytesOfTokens(tokens)
          expect({ name, bytes: bytes.slice(0, wanted.length) }).toEqual({ name, bytes: wanted })
        }
      }).pipe(Effect.scoped),
    )
})
