// The synthesis graph in Kokoro's layout: symbol ids, style and speed in, a waveform out, and in some files the duration of
// each symbol; one call a piece. Published files name their tensors in several ways; element types are read from the graph.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import type { Tensor } from "onnxruntime-node"
import { type EngineError, loadFailed } from "../../protocol/Engine.ts"
import type { OnnxOptions } from "../onnx/OnnxOptions.ts"
import * as OnnxSession from "../onnx/OnnxSession.ts"
import * as Tensors from "../onnx/Tensors.ts"
import { styleSize } from "./VoiceStyles.ts"

export interface KokoroGraph {
  /** True if `speed` is an integer in this graph (as the reference exporter makes it). */
  readonly wholeSpeed: boolean
  /** One native call: ids int64 [1, n + 2], style f32 [1, 256], speed [1] → f32 samples at the model's rate. */
  readonly synthesize: (
    ids: ReadonlyArray<number>,
    style: Float32Array,
    speed: number,
  ) => Effect.Effect<Synthesized, EngineError>
}

interface Synthesized {
  readonly wave: Float32Array
  /** One for each id, in a unit of the graph; undefined if the graph has no such output. */
  readonly durations?: Float32Array
}

/** Names of the output of durations: the published export with timestamps and its reference exporter. */
const durationNames = ["durations", "duration", "pred_dur"]

const floats: ReadonlyArray<Tensor.Type> = ["float32", "float16", "float64"]

export const open = (
  path: string,
  options: OnnxOptions,
): Effect.Effect<KokoroGraph, EngineError, Scope.Scope> =>
  Effect.gen(function* () {
    const session = yield* OnnxSession.open(path, options)
    const ids = yield* OnnxSession.inputNamed(session, ["input_ids", "tokens"])
    const style = yield* OnnxSession.inputNamed(session, ["style", "ref_s"])
    const speed = yield* OnnxSession.inputNamed(session, ["speed"])
    const outputs = [...session.outputs.values()].filter((output) => floats.includes(output.type))
    const durations = [...session.outputs.values()].find(
      ({ name, type }) => durationNames.includes(name) && [...floats, "int64", "int32"].includes(type),
    )
    const others = outputs.filter((output) => output !== durations)
    const audio = others.find((output) => ["waveform", "audio"].includes(output.name)) ?? others[0]
    if (audio === undefined) return yield* badGraph(session.file, "has no float output")
    const typed = (info: OnnxSession.TensorInfo, values: Float32Array, dims: ReadonlyArray<number>) => {
      const tensor = Tensors.numeric(info.type, values, dims)
      return tensor === undefined
        ? badGraph(session.file, `input ${info.name} is ${info.type}`)
        : Effect.succeed(tensor)
    }
    // Types are checked at load, not at the first request.
    yield* typed(style, new Float32Array(styleSize), [1, styleSize])
    yield* typed(speed, Float32Array.of(1), [1])
    const idsOf = (values: ReadonlyArray<number>) => typed(ids, Float32Array.from(values), [1, values.length])
    yield* idsOf([0])
    return {
      wholeSpeed: speed.type === "int64" || speed.type === "int32",
      synthesize: (symbolIds, row, pace) =>
        Effect.gen(function* () {
          const feeds = {
            [ids.name]: yield* idsOf(symbolIds),
            [style.name]: yield* typed(style, row, [1, styleSize]),
            [speed.name]: yield* typed(speed, Float32Array.of(pace), speed.shape.length === 0 ? [] : [1]),
          }
          const names = durations === undefined ? [audio.name] : [audio.name, durations.name]
          const fetched = yield* session.run(feeds, names)
          const wave = Tensors.toFloat32(fetched[audio.name]!)
          const told = durations && Tensors.toNumbers(fetched[durations.name]!)
          // A graph with an output of this name and another length means something else by it.
          return told?.length === symbolIds.length ? { wave, durations: told } : { wave }
        }),
    }
  })

const badGraph = (file: string, problem: string): Effect.Effect<never, EngineError> =>
  Effect.fail(loadFailed("", `${file}: ${problem}`))
