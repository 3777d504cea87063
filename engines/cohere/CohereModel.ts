// The contents of the side files of a published Cohere Transcribe folder: features, prompt tokens, languages. Read once
// at load. Knows no ONNX sessions or requests.
//
// Roles in the catalog entry: `preprocessor` (preprocessor_config.json), `tokenizer` (tokenizer.json),
// `tokenizerConfig` (tokenizer_config.json).

import { Tokenizer } from "@huggingface/tokenizers"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { withDefault } from "#domain/models/EntrySchemas.ts"
import { type EngineSpec, loadFailed } from "../protocol/Engine.ts"
import { readJsonFile } from "../shared/files/EngineSpecFiles.ts"
import { type BytesOf, bytesOfTokens } from "../shared/listening/TokenText.ts"
import type { CohereFeatureOptions } from "./CohereFeatures.ts"

/** The languages that the model was trained on; the vocabulary has tokens for many more. */
export const languageCodes = [
  "ar",
  "de",
  "el",
  "en",
  "es",
  "fr",
  "it",
  "ja",
  "ko",
  "nl",
  "pl",
  "pt",
  "vi",
  "zh",
] as const

/** Defaults are those of the published feature extractor. */
const Preprocessor = Schema.Struct({
  feature_size: withDefault(Schema.Int, 128),
  sampling_rate: withDefault(Schema.Int, 16_000),
  hop_length: withDefault(Schema.Int, 160),
  n_fft: withDefault(Schema.Int, 512),
  win_length: withDefault(Schema.Int, 400),
  preemphasis: withDefault(Schema.Finite, 0.97),
  dither: withDefault(Schema.Finite, 1e-5),
  max_audio_clip_s: withDefault(Schema.Finite, 35),
  overlap_chunk_second: withDefault(Schema.Finite, 5),
})

export interface CohereModel {
  readonly endOfText: number
  readonly prompt: (language: string, punctuation: boolean) => ReadonlyArray<number>
  /** Tokens → bytes of text, none for control tokens. The bytes may begin and end inside a character. */
  readonly bytesOf: BytesOf
  readonly features: CohereFeatureOptions
  /** Seconds of the longest piece, and of the search for a quiet place before its end. */
  readonly pieceSeconds: number
  readonly searchSeconds: number
}

const promptNames = (language: string, punctuation: boolean): ReadonlyArray<string> => [
  "▁",
  "<|startofcontext|>",
  "<|startoftranscript|>",
  "<|emo:undefined|>",
  `<|${language}|>`,
  `<|${language}|>`,
  punctuation ? "<|pnc|>" : "<|nopnc|>",
  "<|noitn|>",
  "<|notimestamp|>",
  "<|nodiarize|>",
]

export const readModel = Effect.fnUntraced(function* (spec: EngineSpec) {
  const preprocessor = yield* Schema.decodeUnknownEffect(Preprocessor)(
    yield* readJsonFile(spec, "preprocessor"),
  ).pipe(Effect.mapError((error) => loadFailed("preprocessor", error.message)))
  const tokenizerJson = yield* readJsonFile(spec, "tokenizer")
  const tokenizerConfig = yield* readJsonFile(spec, "tokenizerConfig")
  const { bytesOf, tokenizer } = yield* Effect.try({
    try: () => ({
      tokenizer: new Tokenizer(tokenizerJson as object, tokenizerConfig as object),
      bytesOf: bytesOfTokens(tokenizerJson),
    }),
    catch: (cause) => loadFailed("tokenizer", (cause as Error).message),
  })
  // All tokens are resolved by their text here, so that a missing one fails the load and not a request.
  const ids = new Map<string, number>()
  const needed = languageCodes.flatMap((language) => [
    ...promptNames(language, true),
    ...promptNames(language, false),
  ])
  for (const name of ["<|endoftext|>", ...needed]) {
    const id = tokenizer.token_to_id(name)
    if (id === undefined) return yield* loadFailed("tokenizer", `no token ${name}`)
    ids.set(name, id)
  }
  return {
    endOfText: ids.get("<|endoftext|>")!,
    prompt: (language, punctuation) => promptNames(language, punctuation).map((name) => ids.get(name)!),
    bytesOf,
    features: {
      melBins: preprocessor.feature_size,
      rateHz: preprocessor.sampling_rate,
      hopSamples: preprocessor.hop_length,
      fftSize: preprocessor.n_fft,
      windowSamples: preprocessor.win_length,
      preemphasis: preprocessor.preemphasis,
      dither: preprocessor.dither,
    },
    pieceSeconds: preprocessor.max_audio_clip_s,
    searchSeconds: preprocessor.overlap_chunk_second,
  } satisfies CohereModel
})
