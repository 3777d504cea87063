// The four published graphs of Chatterbox: a clip → a voice, tokens → embeddings, embeddings → logits of the next speech
// token, speech tokens → a waveform. Names, types and shapes are checked at load.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { Tensor } from "onnxruntime-node"
import { callFailed, type EngineError, loadFailed } from "../protocol/Engine.ts"
import type { OnnxOptions } from "../shared/onnx/OnnxOptions.ts"
import * as OnnxSession from "../shared/onnx/OnnxSession.ts"
import * as Tensors from "../shared/onnx/Tensors.ts"

/** The speech encoder's result for a reference clip. */
export interface ClonedVoice {
  /** f32 [n, width]: put in front of the text. */
  readonly features: Float32Array
  /** Speech tokens of the clip; the waveform decoder starts from them. */
  readonly promptTokens: ReadonlyArray<number>
  readonly embeddings: Tensor
  readonly speakerFeatures: Tensor
}

interface LanguageModelState {
  readonly past: Readonly<Record<string, Tensor>>
  readonly length: number
}

export interface ChatterboxGraphs {
  /** Size of an embedding. */
  readonly width: number
  /** `clip` f32 mono at 24 kHz. */
  readonly voice: (clip: Float32Array) => Effect.Effect<ClonedVoice, EngineError>
  /** Token ids and their positions → f32 [n, width]. */
  readonly embed: (
    ids: ReadonlyArray<number>,
    positions: ReadonlyArray<number>,
  ) => Effect.Effect<Float32Array, EngineError>
  /** An empty cache for `rows` sequences. */
  readonly empty: (rows: number) => LanguageModelState
  /** Embeddings f32 [rows, n, width] → logits of the last position of each row, and the cache after them. */
  readonly step: (
    state: LanguageModelState,
    rows: number,
    embeddings: Float32Array,
  ) => Effect.Effect<
    { readonly logits: ReadonlyArray<Float32Array>; readonly state: LanguageModelState },
    EngineError
  >
  readonly waveform: (
    tokens: ReadonlyArray<number>,
    voice: ClonedVoice,
  ) => Effect.Effect<Float32Array, EngineError>
}

interface GraphFiles {
  readonly speechEncoder: string
  readonly embedTokens: string
  readonly languageModel: string
  readonly conditionalDecoder: string
}

interface GraphOptions extends OnnxOptions {
  /** Strength of emotion, 0 to 1. */
  readonly exaggeration: number
}

const pastName = /^past_key_values\.\d+\.(?:key|value)$/

/** Numbers in the element type that an input declares. */
const feed = (info: OnnxSession.TensorInfo, values: Float32Array, dims: ReadonlyArray<number>): Tensor => {
  const tensor = Tensors.numeric(info.type, values, dims)
  if (tensor === undefined) throw new TypeError(`input ${info.name} is ${info.type}`)
  return tensor
}

const integersOf = (tensor: Tensor): ReadonlyArray<number> =>
  Array.from(tensor.data as Iterable<bigint | number>, Number)

const ones = (rows: number, columns: number): Tensor =>
  new Tensor("int64", new BigInt64Array(rows * columns).fill(1n), [rows, columns])

interface Cache {
  readonly info: OnnxSession.TensorInfo
  readonly present: string
  readonly heads: number
  readonly headWidth: number
}

const cachesOf = (session: OnnxSession.OnnxSession): Effect.Effect<ReadonlyArray<Cache>, EngineError> =>
  Effect.gen(function* () {
    const caches: Array<Cache> = []
    for (const info of session.inputs.values()) {
      if (!pastName.test(info.name)) continue
      const [, heads, , headWidth] = info.shape
      const present = info.name.replace("past_key_values", "present")
      if (typeof heads !== "number" || typeof headWidth !== "number") {
        return yield* loadFailed("languageModel", `${info.name} has no fixed head count and width`)
      }
      if (!session.outputs.has(present)) return yield* loadFailed("languageModel", `no output ${present}`)
      caches.push({ info, present, heads, headWidth })
    }
    if (caches.length === 0) return yield* loadFailed("languageModel", "no past_key_values inputs")
    return caches
  })

export const openGraphs = (
  files: GraphFiles,
  options: GraphOptions,
): Effect.Effect<ChatterboxGraphs, EngineError, Scope.Scope> =>
  Effect.gen(function* () {
    const encoder = yield* OnnxSession.open(files.speechEncoder, options)
    const audio = yield* OnnxSession.inputNamed(encoder, ["audio_values"])
    for (const name of ["audio_features", "audio_tokens", "speaker_embeddings", "speaker_features"]) {
      yield* OnnxSession.outputNamed(encoder, [name])
    }
    const embedder = yield* OnnxSession.open(files.embedTokens, options)
    const inputIds = yield* OnnxSession.inputNamed(embedder, ["input_ids"])
    const embedded = yield* OnnxSession.outputNamed(embedder, ["inputs_embeds"])
    const model = yield* OnnxSession.open(files.languageModel, options)
    const embeddingsIn = yield* OnnxSession.inputNamed(model, ["inputs_embeds"])
    const mask = yield* OnnxSession.inputNamed(model, ["attention_mask"])
    yield* OnnxSession.outputNamed(model, ["logits"])
    const caches = yield* cachesOf(model)
    const decoder = yield* OnnxSession.open(files.conditionalDecoder, options)
    const speechTokens = yield* OnnxSession.inputNamed(decoder, ["speech_tokens"])
    const speakerEmbeddings = yield* OnnxSession.inputNamed(decoder, ["speaker_embeddings"])
    const speakerFeatures = yield* OnnxSession.inputNamed(decoder, ["speaker_features"])
    const wave = yield* OnnxSession.outputNamed(decoder, ["waveform", "wav"])
    const width = embeddingsIn.shape[2]
    if (typeof width !== "number")
      return yield* loadFailed("languageModel", "inputs_embeds has no fixed width")

    const embed: ChatterboxGraphs["embed"] = (ids, positions) =>
      Effect.suspend(() => {
        const dims = [1, ids.length]
        const feeds: Record<string, Tensor> = { [inputIds.name]: Tensors.int64(ids, dims) }
        const positionIds = embedder.inputs.get("position_ids")
        if (positionIds !== undefined) feeds[positionIds.name] = Tensors.int64(positions, dims)
        const feeling = embedder.inputs.get("exaggeration")
        if (feeling !== undefined)
          feeds[feeling.name] = feed(feeling, Float32Array.of(options.exaggeration), [1])
        return Effect.map(embedder.run(feeds), (outputs) => Tensors.toFloat32(outputs[embedded.name]!))
      })

    const step: ChatterboxGraphs["step"] = (state, rows, values) =>
      Effect.suspend(() => {
        const count = values.length / rows / width
        const length = state.length + count
        const feeds: Record<string, Tensor> = {
          ...state.past,
          [embeddingsIn.name]: feed(embeddingsIn, values, [rows, count, width]),
          [mask.name]: ones(rows, length),
        }
        const positionIds = model.inputs.get("position_ids")
        if (positionIds !== undefined) {
          const each = Array.from({ length: rows * count }, (_, at) => state.length + (at % count))
          feeds[positionIds.name] = Tensors.int64(each, [rows, count])
        }
        const wanted = ["logits", ...caches.map(({ present }) => present)]
        return Effect.map(model.run(feeds, wanted), (outputs) => {
          const logits = outputs.logits!
          const all = Tensors.toFloat32(logits)
          const vocabulary = logits.dims.at(-1)!
          // Exports return the logits of all positions or of the last one only.
          const perRow = all.length / rows
          const past = Object.fromEntries(caches.map(({ info, present }) => [info.name, outputs[present]!]))
          return {
            logits: Array.from({ length: rows }, (_, row) =>
              all.subarray((row + 1) * perRow - vocabulary, (row + 1) * perRow),
            ),
            state: { past, length },
          }
        })
      })

    return {
      width,
      voice: (clip) =>
        Effect.suspend(() => encoder.run({ [audio.name]: feed(audio, clip, [1, clip.length]) })).pipe(
          Effect.map((outputs) => ({
            features: Tensors.toFloat32(outputs.audio_features!),
            promptTokens: integersOf(outputs.audio_tokens!),
            embeddings: outputs.speaker_embeddings!,
            speakerFeatures: outputs.speaker_features!,
          })),
        ),
      embed,
      empty: (rows) => ({
        past: Object.fromEntries(
          caches.map(({ headWidth, heads, info }) => [
            info.name,
            feed(info, new Float32Array(0), [rows, heads, 0, headWidth]),
          ]),
        ),
        length: 0,
      }),
      step,
      waveform: (tokens, voice) =>
        Effect.gen(function* () {
          if (tokens.length === 0) return yield* callFailed("no speech tokens")
          const outputs = yield* decoder.run(
            {
              [speechTokens.name]: Tensors.int64(tokens, [1, tokens.length]),
              [speakerEmbeddings.name]: voice.embeddings,
              [speakerFeatures.name]: voice.speakerFeatures,
            },
            [wave.name],
          )
          return Tensors.toFloat32(outputs[wave.name]!)
        }),
    }
  })
