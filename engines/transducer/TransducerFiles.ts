// The files beside a transducer's graphs: its vocabulary and its configuration. Read once at load. Knows no ONNX sessions and no requests.
//
// Roles in the catalog entry: `vocabulary` (vocab.txt, tokens.txt or tokenizer.model), `config` and `processor` (JSON, both optional).
import { readFile } from "node:fs/promises"
import { basename } from "node:path"
import * as Effect from "effect/Effect"
import { isJsonObject } from "#domain/wire/Json.ts"
import { type EngineError, type EngineSpec, loadFailed } from "../protocol/Engine.ts"
import { fileOf, readJsonFile } from "../shared/files/EngineSpecFiles.ts"
import {
  type Vocabulary,
  VocabularyProblem,
  vocabularyOfSentencePiece,
  vocabularyOfText,
} from "./decoding/Vocabulary.ts"

/** What configurations say, under the names that the exports use. Exports nest these keys differently, so they are found at any depth. */
export interface TransducerConfig {
  readonly melBins: number | undefined
  readonly chunkSamples: number | undefined
  readonly leftFrames: number | undefined
  readonly mostPerFrame: number | undefined
  readonly blank: number | undefined
  /** Tag of a language (`en-US`) → the number that the encoder takes for it. */
  readonly prompts: ReadonlyMap<string, number> | undefined
}

export const rateHz = 16_000

/** Keys of numbers that must have this value, because the features are computed so. */
const fixed: Readonly<Record<string, number>> = {
  sample_rate: rateHz,
  sampling_rate: rateHz,
  hop_length: 160,
  win_length: 400,
  fft_size: 512,
  n_fft: 512,
}

/** Deepest nesting that is searched. */
const deepest = 8

const find = (value: unknown, names: ReadonlyArray<string>, depth = 0): unknown => {
  if (!isJsonObject(value) || depth > deepest) return undefined
  for (const name of names) if (value[name] !== undefined) return value[name]
  for (const inner of Object.values(value)) {
    const found = find(inner, names, depth + 1)
    if (found !== undefined) return found
  }
  return undefined
}

const numberOf = (value: unknown): number | undefined =>
  typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : undefined

const promptsOf = (value: unknown): ReadonlyMap<string, number> | undefined => {
  if (!isJsonObject(value)) return undefined
  const prompts = new Map<string, number>()
  for (const [tag, id] of Object.entries(value)) {
    const number = numberOf(id)
    if (number !== undefined) prompts.set(tag, number)
  }
  return prompts.size === 0 ? undefined : prompts
}

/** The first value that one of the files has. */
const readConfig = Effect.fnUntraced(function* (
  spec: EngineSpec,
): Effect.fn.Return<TransducerConfig, EngineError> {
  const files: Array<unknown> = []
  for (const role of ["config", "processor"] as const) {
    if (spec.files[role] === undefined) continue
    const json = yield* readJsonFile(spec, role)
    for (const [name, wanted] of Object.entries(fixed)) {
      const said = find(json, [name])
      if (typeof said === "number" && said !== wanted)
        return yield* loadFailed(
          role,
          `${name} is ${said}; this adapter computes features with ${wanted} only`,
        )
    }
    files.push(json)
  }
  const said = (...names: ReadonlyArray<string>) =>
    files.map((json) => find(json, names)).find((value) => value !== undefined)
  return {
    melBins: numberOf(said("num_mels", "features_size", "feature_size", "n_mels")),
    chunkSamples: numberOf(said("chunk_samples")),
    leftFrames: numberOf(said("left_context")),
    mostPerFrame: numberOf(said("max_symbols_per_step", "max_tokens_per_step")),
    blank: numberOf(said("blank_id")),
    prompts: promptsOf(said("prompt_dictionary")),
  }
})

const readVocabulary = Effect.fnUntraced(function* (
  spec: EngineSpec,
): Effect.fn.Return<Vocabulary, EngineError> {
  const path = yield* fileOf(spec, "vocabulary")
  const name = basename(path)
  const bytes = yield* Effect.tryPromise({
    try: () => readFile(path),
    catch: (cause) =>
      loadFailed("vocabulary", `${name}: ${(cause as NodeJS.ErrnoException).code ?? "unreadable"}`),
  })
  return yield* Effect.try({
    try: () =>
      name.endsWith(".model") ? vocabularyOfSentencePiece(bytes) : vocabularyOfText(bytes.toString("utf8")),
    catch: (cause) =>
      loadFailed(
        "vocabulary",
        `${name} ${cause instanceof VocabularyProblem ? cause.message : "is damaged"}`,
      ),
  })
})

interface TransducerFiles {
  readonly vocabulary: Vocabulary
  readonly config: TransducerConfig
}

export const readFiles = Effect.fnUntraced(function* (
  spec: EngineSpec,
): Effect.fn.Return<TransducerFiles, EngineError> {
  return { vocabulary: yield* readVocabulary(spec), config: yield* readConfig(spec) }
})
