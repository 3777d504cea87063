// The encoder graphs of transducer exports, in the three published forms: features in, frames out.
//
// - NeMo's cache-aware encoder takes chunks with the 9 feature frames before them, and three caches.
// - Zipformer takes chunks with the 13 feature frames behind them, and caches for each layer.
// - NeMo's offline encoder takes a whole piece.
//
// Each is recognised by its inputs. A chunk's result depends only on the audio until it and on the caches, which the caller keeps.
// Every native call goes through the engine's gate.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type * as Semaphore from "effect/Semaphore"
import { Tensor } from "onnxruntime-node"
import { callFailed, type EngineError, loadFailed } from "../protocol/Engine.ts"
import * as NemoMel from "../shared/listening/NemoMel.ts"
import type { OnnxSession, TensorInfo } from "../shared/onnx/OnnxSession.ts"
import { numeric, toFloat32, toNumbers } from "../shared/onnx/Tensors.ts"
import * as KaldiFbank from "./features/KaldiFbank.ts"
import type { TransducerOptions } from "./Options.ts"
import { agrees, batchAxis, make as makeShared } from "./SharedCalls.ts"
import { rateHz, type TransducerConfig } from "./TransducerFiles.ts"

/** Encoder frames of a chunk or of a piece. */
interface EncodedFrames {
  readonly count: number
  /** A copy of one frame: [width]. */
  readonly column: (frame: number) => Float32Array
}

export type Caches = Readonly<Record<string, Tensor>>

export interface StreamingEncoder {
  readonly isStreaming: true
  readonly what: string
  /** Samples of a chunk; chunk k begins at k times this. */
  readonly chunkSamples: number
  /** Samples behind the end of a chunk that are needed for it. */
  readonly aheadSamples: number
  readonly framesPerChunk: number
  /** Seconds of one encoder frame. */
  readonly frameSeconds: number
  /** Silence behind the end of the audio with which the last words are heard, seconds. */
  readonly tailSeconds: number
  readonly start: Caches
  /** Requests whose chunks one call takes at most. */
  readonly sharedCalls: number
  /** Whether it takes the number of a language. */
  readonly hasPrompt: boolean
  /** Chunk `index` of `samples`, which begin with the piece. `caches` are those after the chunk before it. */
  readonly chunk: (
    samples: Float32Array,
    index: number,
    caches: Caches,
    prompt: number,
  ) => Effect.Effect<{ readonly frames: EncodedFrames; readonly caches: Caches }, EngineError>
}

export interface OfflineEncoder {
  readonly isStreaming: false
  readonly what: string
  readonly frameSeconds: number
  readonly encode: (samples: Float32Array) => Effect.Effect<EncodedFrames, EngineError>
}

interface EncoderSettings {
  readonly options: TransducerOptions
  readonly config: TransducerConfig
  /** Width of an encoder frame, if the other graphs declare it. */
  readonly width: number | undefined
}

const hopSamples = 160
/** Feature frames of one encoder frame of NeMo's FastConformer, and of a Zipformer. */
const nemoSubsampling = 8
const zipformerSubsampling = 4
/** Feature frames before a chunk that NeMo's subsampling needs, and those behind a Zipformer's chunk. */
const nemoBefore = 9
const zipformerBehind = 13

const nemoFeatures = { rateHz, hopSamples, fftSize: 512, windowSamples: 400, preemphasis: 0.97 }

const refused = (session: OnnxSession, problem: string) => loadFailed("encoder", `${session.file} ${problem}`)

const tensorOf = (
  session: OnnxSession,
  info: TensorInfo,
  values: Float32Array,
  shape: ReadonlyArray<number>,
) => {
  const tensor = numeric(info.type, values, shape)
  return tensor === undefined
    ? Effect.fail(callFailed(`${session.file} takes ${info.type}`))
    : Effect.succeed(tensor)
}

/** Features that differ by their seed. */
const noiseLike = ({ type }: TensorInfo, shape: ReadonlyArray<number>, seed: number): Tensor => {
  const size = shape.reduce((a, b) => a * b, 1)
  const values = Float32Array.from({ length: size }, (_, i) => Math.sin(seed * 7 + i * (seed + 0.3)))
  return numeric(type, values, shape) ?? new Tensor("float32", values, shape)
}

/** [1, width, frames] or [1, frames, width] as frames. */
const framesOf = (
  output: Tensor,
  count: number,
  width: number | undefined,
  timeFirst: boolean,
): EncodedFrames => {
  const [, a = 0, b = 0] = output.dims
  const first = width === undefined || a === b ? timeFirst : b === width
  const values = toFloat32(output)
  const [frames, size] = first ? [a, b] : [b, a]
  return {
    count: Math.min(count, frames),
    column: (frame) =>
      first
        ? values.slice(frame * size, (frame + 1) * size)
        : Float32Array.from({ length: size }, (_, i) => values[i * frames + frame]!),
  }
}

/** The outputs of frames and of their number. */
const outputsOf = Effect.fnUntraced(function* (session: OnnxSession) {
  const names = [...session.outputs.keys()]
  const frames = names.find((name) => ["outputs", "encoded", "encoder_out"].includes(name))
  if (frames === undefined)
    return yield* refused(session, `has no output of frames, only ${names.join(", ")}`)
  return { frames, length: names.find((name) => ["encoded_lengths", "encoded_len"].includes(name)) }
})

const countOf = (outputs: Readonly<Record<string, Tensor>>, length: string | undefined): number =>
  length === undefined ? Number.POSITIVE_INFINITY : (toNumbers(outputs[length]!)[0] ?? 0)

/** Input → output that replaces it. Exporters put "next" and "new" in different places. */
const cachePairs = Effect.fnUntraced(function* (
  session: OnnxSession,
  inputs: ReadonlyArray<TensorInfo>,
  free: Readonly<Record<string, number>> = {},
) {
  const start: Record<string, Tensor> = {}
  const pairs: Array<readonly [input: string, output: string]> = []
  for (const info of inputs) {
    const { name, shape } = info
    const names = [`${name}_next`, `new_${name}`, name.replace(/_len$/, "_next_len")]
    const output = names.find((one) => one !== name && session.outputs.has(one))
    if (output === undefined)
      return yield* refused(session, `has no output ${names[0]}: it is cut or of another kind`)
    // The batch is 1; a cache's length may be free as well.
    const dims = shape.map((size, at) =>
      typeof size === "number" ? size : at === longestAxis(name) ? (free[name] ?? 1) : 1,
    )
    const tensor = numeric(info.type, new Float32Array(dims.reduce((a, b) => a * b, 1)), dims)
    if (tensor === undefined) return yield* refused(session, `takes ${name} as ${info.type}`)
    start[name] = tensor
    pairs.push([name, output])
  }
  return { start: start as Caches, pairs }
})

/** Axis of the frames in [1, layers, frames, width] and [layers, 1, frames, width]. */
const longestAxis = (name: string): number => (name === "cache_last_channel" ? 2 : -1)

/** Rows of one call at most: more of them only wait for each other. A guess. */
const mostShared = 8

/** How chunks are run: with those of other requests, where the graph takes several and gives each what it gives it alone. */
const sharing = Effect.fnUntraced(function* (
  session: OnnxSession,
  gate: Semaphore.Semaphore,
  fetches: ReadonlyArray<string>,
  pairs: ReadonlyArray<readonly [input: string, output: string]>,
  slots: number,
  probe: (seed: number) => Readonly<Record<string, Tensor>>,
) {
  const inputs = [...session.inputs.values()].map((info) => [info.name, batchAxis(info)] as const)
  const ofCaches = new Map(pairs.map(([input, output]) => [output, input]))
  const axes = new Map<string, 0 | 1>()
  for (const [name, axis] of inputs) if (axis !== undefined) axes.set(name, axis)
  const isFree = axes.size === inputs.length
  for (const name of fetches) axes.set(name, axes.get(ofCaches.get(name) ?? "") ?? 0)
  const most = Math.min(slots, mostShared)
  const shares = isFree && most > 1 && (yield* agrees(session, [probe(1), probe(2)], fetches, axes))
  return makeShared(session, gate, fetches, shares ? axes : undefined, most)
})

const nextCaches = (
  pairs: ReadonlyArray<readonly [string, string]>,
  outputs: Readonly<Record<string, Tensor>>,
): Caches => Object.fromEntries(pairs.map(([input, output]) => [input, outputs[output]!]))

export const make = Effect.fnUntraced(function* (
  session: OnnxSession,
  gate: Semaphore.Semaphore,
  settings: EncoderSettings,
): Effect.fn.Return<StreamingEncoder | OfflineEncoder, EngineError, Scope.Scope> {
  const has = (name: string) => session.inputs.has(name)
  if (has("x")) return yield* zipformer(session, gate, settings)
  const audio = session.inputs.get("audio_signal") ?? session.inputs.get("processed_signal")
  const length = session.inputs.get("length") ?? session.inputs.get("processed_signal_length")
  if (audio === undefined || length === undefined) {
    const names = [...session.inputs.keys()].join(", ")
    return yield* refused(session, `takes ${names}, which is none of the layouts that are read`)
  }
  return has("cache_last_channel")
    ? yield* cacheAware(session, gate, settings, audio, length)
    : yield* offline(session, gate, settings, audio, length)
})

/** A dimension that must be what the configuration or the features say. */
const binsOf = Effect.fnUntraced(function* (
  session: OnnxSession,
  declared: number | undefined,
  config: number | undefined,
  usual: number,
): Effect.fn.Return<number, EngineError> {
  if (declared !== undefined && config !== undefined && declared !== config)
    return yield* refused(
      session,
      `takes ${declared} mel bins, its configuration says ${config}: the export is mixed`,
    )
  const bins = declared ?? config ?? usual
  if (bins < 16 || bins > 256)
    return yield* refused(session, `takes ${bins} mel bins; 16 to 256 are possible`)
  return bins
})

const fixedSize = (size: number | string | undefined): number | undefined =>
  typeof size === "number" && size > 0 ? size : undefined

// ------------------------------------------------------------ NeMo, chunk by chunk

const cacheAware = Effect.fnUntraced(function* (
  session: OnnxSession,
  gate: Semaphore.Semaphore,
  { config, options, width }: EncoderSettings,
  audio: TensorInfo,
  length: TensorInfo,
): Effect.fn.Return<StreamingEncoder, EngineError, Scope.Scope> {
  const [, a, b] = audio.shape
  // Time comes first where the last axis has the size of the features: only 80 and 128 are published.
  const timeFirst = [80, 128].includes(Number(b)) && ![80, 128].includes(Number(a))
  const bins = yield* binsOf(session, fixedSize(timeFirst ? b : a), config.melBins, 128)
  const window = fixedSize(timeFirst ? a : b)
  const said = options.chunkMs === undefined ? config.chunkSamples : (options.chunkMs * rateHz) / 1_000
  const shift = window === undefined ? (said ?? 8_960) / hopSamples : window - nemoBefore
  if (shift < nemoSubsampling || shift % nemoSubsampling !== 0)
    return yield* refused(
      session,
      `takes ${window ?? shift} feature frames, which is no chunk of whole encoder frames`,
    )
  if (said !== undefined && said !== shift * hopSamples)
    return yield* refused(
      session,
      `takes chunks of ${(shift * hopSamples * 1_000) / rateHz} ms, and ${options.chunkMs === undefined ? "the configuration says" : "chunkMs is"} ${(said * 1_000) / rateHz}`,
    )
  const names = ["cache_last_channel", "cache_last_time", "cache_last_channel_len"]
  const infos = names.flatMap((name) => session.inputs.get(name) ?? [])
  if (infos.length !== names.length)
    return yield* refused(session, `lacks one of ${names.join(", ")}: it is cut`)
  const left = config.leftFrames ?? options.leftFrames
  const { pairs, start } = yield* cachePairs(session, infos, { cache_last_channel: left })
  const { frames, length: count } = yield* outputsOf(session)
  const prompt = session.inputs.get("lang_id") ?? session.inputs.get("prompt_index")
  const known = [audio, length, ...infos, ...(prompt === undefined ? [] : [prompt])].map(({ name }) => name)
  const strange = [...session.inputs.keys()].find((name) => !known.includes(name))
  if (strange !== undefined) return yield* refused(session, `has an unknown input ${strange}`)
  const fetches = [frames, ...(count === undefined ? [] : [count]), ...pairs.map(([, output]) => output)]
  const mel = yield* NemoMel.make({ ...nemoFeatures, melBins: bins })
  const taken = shift + nemoBefore
  const calls = yield* sharing(session, gate, fetches, pairs, options.slots, (seed) => ({
    ...start,
    [audio.name]: noiseLike(audio, timeFirst ? [1, taken, bins] : [1, bins, taken], seed),
    [length.name]: numeric(length.type, Float32Array.of(taken), [1])!,
    ...(prompt === undefined ? {} : { [prompt.name]: numeric(prompt.type, Float32Array.of(0), [1])! }),
  }))
  return {
    isStreaming: true,
    what: "NeMo cache-aware FastConformer",
    chunkSamples: shift * hopSamples,
    // The last frame's window reaches 200 samples behind its hop's beginning.
    aheadSamples: nemoFeatures.windowSamples / 2 - hopSamples,
    framesPerChunk: shift / nemoSubsampling,
    frameSeconds: (nemoSubsampling * hopSamples) / rateHz,
    // A guess: half a second is more than the longest delay with which these models emit.
    tailSeconds: 0.5,
    start,
    sharedCalls: calls.most,
    hasPrompt: prompt !== undefined,
    chunk: Effect.fnUntraced(function* (samples, index, caches, id) {
      const to = (index + 1) * shift
      const from = Math.max(0, index * shift - nemoBefore)
      const made = mel.frames(samples, from, to)
      // Before the piece the frames are zero.
      const values = new Float32Array(taken * bins)
      values.set(made, values.length - made.length)
      const feeds: Record<string, Tensor> = { ...caches }
      feeds[audio.name] = timeFirst
        ? yield* tensorOf(session, audio, values, [1, taken, bins])
        : yield* tensorOf(session, audio, transposed(values, taken, bins), [1, bins, taken])
      feeds[length.name] = yield* tensorOf(session, length, Float32Array.of(taken), [1])
      if (prompt !== undefined)
        feeds[prompt.name] = yield* tensorOf(session, prompt, Float32Array.of(id), [1])
      const outputs = yield* calls.run(feeds)
      return {
        frames: framesOf(outputs[frames]!, countOf(outputs, count), width, timeFirst),
        caches: nextCaches(pairs, outputs),
      }
    }),
  }
})

/** [frames, bins] → [bins, frames]. */
const transposed = (values: Float32Array, frames: number, bins: number): Float32Array => {
  const to = new Float32Array(values.length)
  for (let frame = 0; frame < frames; frame++)
    for (let bin = 0; bin < bins; bin++) to[bin * frames + frame] = values[frame * bins + bin]!
  return to
}

// ------------------------------------------------------------ Zipformer, chunk by chunk

const zipformer = Effect.fnUntraced(function* (
  session: OnnxSession,
  gate: Semaphore.Semaphore,
  { config, options, width }: EncoderSettings,
): Effect.fn.Return<StreamingEncoder, EngineError, Scope.Scope> {
  const x = session.inputs.get("x")!
  const [, window, declared] = x.shape
  const taken = fixedSize(window)
  if (taken === undefined || taken <= zipformerBehind)
    return yield* refused(session, "does not say how many feature frames a chunk has")
  const shift = taken - zipformerBehind
  if (options.chunkMs !== undefined && (options.chunkMs * rateHz) / 1_000 !== shift * hopSamples)
    return yield* refused(
      session,
      `takes chunks of ${(shift * hopSamples * 1_000) / rateHz} ms, and chunkMs is ${options.chunkMs}`,
    )
  const bins = yield* binsOf(session, fixedSize(declared), config.melBins, 80)
  const infos = [...session.inputs.values()].filter(({ name }) => name !== "x")
  if (infos.length === 0) return yield* refused(session, "has no caches: only streaming Zipformers are read")
  const { pairs, start } = yield* cachePairs(session, infos)
  const { frames } = yield* outputsOf(session)
  const fetches = [frames, ...pairs.map(([, output]) => output)]
  const fbank = yield* KaldiFbank.make(bins)
  const calls = yield* sharing(session, gate, fetches, pairs, options.slots, (seed) => ({
    ...start,
    x: noiseLike(x, [1, taken, bins], seed),
  }))
  return {
    isStreaming: true,
    what: "streaming Zipformer",
    chunkSamples: shift * hopSamples,
    aheadSamples: (zipformerBehind - 1) * hopSamples + KaldiFbank.frameAfter,
    framesPerChunk: shift / zipformerSubsampling,
    frameSeconds: (zipformerSubsampling * hopSamples) / rateHz,
    // Known from the recipe's users: 0.3 s loses words, 1 s does not.
    tailSeconds: 1,
    start,
    sharedCalls: calls.most,
    hasPrompt: false,
    chunk: Effect.fnUntraced(function* (samples, index, caches) {
      const values = fbank.frames(samples, index * shift, index * shift + taken)
      const feeds: Record<string, Tensor> = {
        ...caches,
        x: yield* tensorOf(session, x, values, [1, taken, bins]),
      }
      const outputs = yield* calls.run(feeds)
      return {
        frames: framesOf(outputs[frames]!, Number.POSITIVE_INFINITY, width, true),
        caches: nextCaches(pairs, outputs),
      }
    }),
  }
})

// ------------------------------------------------------------ NeMo, a piece at once

const offline = Effect.fnUntraced(function* (
  session: OnnxSession,
  gate: Semaphore.Semaphore,
  { config, width }: EncoderSettings,
  audio: TensorInfo,
  length: TensorInfo,
): Effect.fn.Return<OfflineEncoder, EngineError, Scope.Scope> {
  const bins = yield* binsOf(session, fixedSize(audio.shape[1]), config.melBins, 80)
  const strange = [...session.inputs.keys()].find((name) => name !== audio.name && name !== length.name)
  if (strange !== undefined) return yield* refused(session, `has an unknown input ${strange}`)
  const { frames, length: count } = yield* outputsOf(session)
  const fetches = [frames, ...(count === undefined ? [] : [count])]
  const mel = yield* NemoMel.make({ ...nemoFeatures, melBins: bins })
  return {
    isStreaming: false,
    what: "NeMo FastConformer",
    frameSeconds: (nemoSubsampling * hopSamples) / rateHz,
    encode: Effect.fnUntraced(function* (samples) {
      const taken = Math.floor(samples.length / hopSamples)
      const values = mel.frames(samples, 0, taken)
      NemoMel.normalise(values, taken, bins)
      const feeds = {
        [audio.name]: yield* tensorOf(session, audio, transposed(values, taken, bins), [1, bins, taken]),
        [length.name]: yield* tensorOf(session, length, Float32Array.of(taken), [1]),
      }
      const outputs = yield* gate.withPermit(session.run(feeds, fetches))
      return framesOf(outputs[frames]!, countOf(outputs, count), width, false)
    }),
  }
})
