// The contents of the side files of a published Whisper folder: dimensions, token ids, languages, limits. Read once at
// load. Knows no ONNX sessions or requests.
//
// Roles in the catalog entry: `config` (config.json), `generation` (generation_config.json), `preprocessor`
// (preprocessor_config.json), `tokenizer` (tokenizer.json), `tokenizerConfig` (tokenizer_config.json).

import { Tokenizer } from "@huggingface/tokenizers"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type EngineSpec, loadFailed } from "../protocol/Engine.ts"
import { readJsonFile } from "../shared/files/EngineSpecFiles.ts"
import type { LogMelOptions } from "../shared/listening/LogMel.ts"
import { type BytesOf, bytesOfTokens } from "../shared/listening/TokenText.ts"
import { nonSpeechTokens } from "./rules/NonSpeechTokens.ts"
import type { TokenLayout } from "./rules/TimestampRules.ts"

const Config = Schema.Struct({
  d_model: Schema.Int,
  num_mel_bins: Schema.Int,
  max_source_positions: Schema.Int,
  max_target_positions: Schema.Int,
})

const Ids = Schema.NullOr(Schema.Array(Schema.Int))
const Generation = Schema.Struct({
  eos_token_id: Schema.Union([Schema.Int, Schema.NonEmptyArray(Schema.Int)]),
  decoder_start_token_id: Schema.Int,
  no_timestamps_token_id: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  prev_sot_token_id: Schema.optionalKey(Schema.NullOr(Schema.Int)),
  lang_to_id: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.Int))),
  task_to_id: Schema.optionalKey(Schema.NullOr(Schema.Record(Schema.String, Schema.Int))),
  begin_suppress_tokens: Schema.optionalKey(Ids),
  suppress_tokens: Schema.optionalKey(Ids),
  alignment_heads: Schema.optionalKey(Schema.NullOr(Schema.Array(Schema.Tuple([Schema.Int, Schema.Int])))),
  max_initial_timestamp_index: Schema.optionalKey(Schema.NullOr(Schema.Int)),
})

const Preprocessor = Schema.Struct({
  feature_size: Schema.Int,
  sampling_rate: Schema.Int,
  hop_length: Schema.Int,
  n_fft: Schema.Int,
  n_samples: Schema.Int,
})

/** The part of tokenizer.json that distinguishes a byte alphabet from a merged vocabulary. */
const Merges = Schema.Struct({ model: Schema.Struct({ merges: Schema.Array(Schema.Unknown) }) })

export interface WhisperModel {
  readonly layout: TokenLayout
  readonly startOfTranscript: number
  readonly noTimestamps: number
  /** Undefined if the vocabulary lacks the token: then there is no conditioning on earlier text. */
  readonly startOfPrevious: number | undefined
  readonly noSpeech: number | undefined
  readonly transcribe: number | undefined
  /** Undefined for models that know one language. */
  readonly translate: number | undefined
  /** ISO-639-1 (or the model's own code) → language token; empty for a single-language model. */
  readonly languages: ReadonlyMap<string, number>
  /** Layer and head of the decoder's attention heads that follow the speech; empty if the files do not say. */
  readonly alignmentHeads: ReadonlyArray<readonly [layer: number, head: number]>
  readonly suppressed: ReadonlyArray<number>
  readonly suppressedFirst: ReadonlyArray<number>
  readonly features: LogMelOptions
  /** 480 000 samples: 30 s. */
  readonly windowSamples: number
  /** Encoder outputs of a window, 1500. */
  readonly sourcePositions: number
  /** Most tokens of prompt and output together, 448 in the published models. */
  readonly targetPositions: number
  readonly width: number
  /** True when one token is one byte (an alphabet without merges), so that texts are several times longer. */
  readonly byteTokens: boolean
  /** Text → tokens. Control tokens written in a user's text are dropped. */
  readonly encode: (text: string) => ReadonlyArray<number>
  /** Text tokens → bytes of text, which may begin and end inside a character. */
  readonly bytesOf: BytesOf
}

const decodeAs = <S extends Schema.ConstraintDecoder<unknown>>(schema: S, role: string, json: unknown) =>
  Schema.decodeUnknownEffect(schema)(json).pipe(Effect.mapError((error) => loadFailed(role, error.message)))

export const readModel = Effect.fnUntraced(function* (spec: EngineSpec) {
  const config = yield* decodeAs(Config, "config", yield* readJsonFile(spec, "config"))
  const generation = yield* decodeAs(Generation, "generation", yield* readJsonFile(spec, "generation"))
  const preprocessor = yield* decodeAs(
    Preprocessor,
    "preprocessor",
    yield* readJsonFile(spec, "preprocessor"),
  )
  const tokenizerJson = yield* readJsonFile(spec, "tokenizer")
  const { merges } = (yield* decodeAs(Merges, "tokenizer", tokenizerJson)).model
  const tokenizerConfig = yield* readJsonFile(spec, "tokenizerConfig")
  const { bytesOf, tokenizer } = yield* Effect.try({
    try: () => ({
      tokenizer: new Tokenizer(tokenizerJson as object, tokenizerConfig as object),
      bytesOf: bytesOfTokens(tokenizerJson),
    }),
    catch: (cause) => loadFailed("tokenizer", (cause as Error).message),
  })
  const idOf = (...names: ReadonlyArray<string>) => {
    for (const name of names) {
      const id = tokenizer.token_to_id(name)
      if (id !== undefined) return id
    }
    return undefined
  }
  const noTimestamps = generation.no_timestamps_token_id ?? idOf("<|notimestamps|>")
  if (noTimestamps === undefined) return yield* loadFailed("tokenizer", "no <|notimestamps|> token")
  const endOfText =
    typeof generation.eos_token_id === "number" ? generation.eos_token_id : generation.eos_token_id[0]
  if (endOfText >= noTimestamps) {
    return yield* loadFailed("generation", "control tokens are not in the published order")
  }
  const encode = (text: string): ReadonlyArray<number> =>
    tokenizer.encode(text, { add_special_tokens: false }).ids.filter((id: number) => id < endOfText)
  const listed = generation.suppress_tokens ?? [-1]
  const languages = Object.entries(generation.lang_to_id ?? {}).map(
    ([token, id]) => [token.replace(/^<\|(.*)\|>$/, "$1"), id] as const,
  )
  return {
    layout: {
      endOfText,
      timestampBegin: noTimestamps + 1,
      // 50 steps, one second: the reference decoder's default.
      maxInitialTimestamp: generation.max_initial_timestamp_index ?? 50,
    },
    startOfTranscript: generation.decoder_start_token_id,
    noTimestamps,
    startOfPrevious: generation.prev_sot_token_id ?? idOf("<|startofprev|>"),
    noSpeech: idOf("<|nospeech|>", "<|nocaptions|>"),
    transcribe: generation.task_to_id?.transcribe ?? idOf("<|transcribe|>"),
    languages: new Map(languages),
    // Files that list tasks without this one cannot do it, though their tokenizer has the token.
    translate:
      languages.length < 2
        ? undefined
        : (generation.task_to_id ?? { translate: idOf("<|translate|>") }).translate,
    alignmentHeads: generation.alignment_heads ?? [],
    suppressed: [
      ...listed.filter((id) => id >= 0 && id !== endOfText),
      ...(listed.includes(-1) ? nonSpeechTokens(encode) : []),
    ],
    suppressedFirst: generation.begin_suppress_tokens ?? [],
    features: {
      melBins: preprocessor.feature_size,
      fftSize: preprocessor.n_fft,
      hopSamples: preprocessor.hop_length,
      rateHz: preprocessor.sampling_rate,
    },
    windowSamples: preprocessor.n_samples,
    sourcePositions: config.max_source_positions,
    targetPositions: config.max_target_positions,
    width: config.d_model,
    byteTokens: merges.length === 0,
    encode,
    bytesOf,
  } satisfies WhisperModel
})
