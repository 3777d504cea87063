// The detection engine for Silero VAD 5 and 6 (adapter "silero-vad-onnx"): a probability of speech for each 32 ms of 16 kHz audio.
//
// One step, from the published code: 512 new samples behind the last 64 of the step before (zeros at the beginning), [batch, 576], and the
// recurrent state [2, batch, 128]; out come `output` [batch, 1] and `stateN`, which is fed back. Without the 64 samples the graph answers as
// if there were no speech, and reports no error. Exports differ: `sr` (the rate) is an input or is not, and a graph may have a fixed batch of 1.
//
// Pieces of several sessions that a request brings go through one call for each step. Role in the catalog entry: `model`.
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { s16ToF32 } from "#domain/audio/Audio.ts"
import { speechStepSamples } from "../protocol/Detection.ts"
import {
  callFailed,
  type DetectEnd,
  type DetectionEngine,
  type DetectPiece,
  type DetectRequest,
  type EngineDescriptor,
  type EngineError,
  type EngineSpec,
  invalidInput,
  loadFailed,
  type Outlet,
} from "../protocol/Engine.ts"
import { decodeOptions, fileOf } from "../shared/files/EngineSpecFiles.ts"
import { optionsOf } from "../shared/onnx/OnnxOptions.ts"
import * as OnnxSession from "../shared/onnx/OnnxSession.ts"
import { int64, numeric, toFloat32 } from "../shared/onnx/Tensors.ts"
import { DetectionOptions } from "./Options.ts"

const rateHz = 16_000
/** Samples of the step before that a step sees. */
const contextSamples = 64
const inputSamples = contextSamples + speechStepSamples
/** Values of one layer of the recurrent state. There are two layers. */
const stateWidth = 128
const stateValues = 2 * stateWidth
/** What a step leaves for the next one of the same audio: its last samples, and the state of both layers. */
const memoryValues = contextSamples + stateValues

/** One session's piece while it is worked at. */
interface Row {
  readonly samples: Float32Array
  readonly memory: Float32Array
  readonly scores: Float32Array
}

const rowOf = ({ memory, samples }: DetectPiece): Effect.Effect<Row, EngineError> => {
  if (samples.length === 0 || samples.length % speechStepSamples !== 0)
    return Effect.fail(invalidInput("pieces", `each must be whole steps of ${speechStepSamples} samples`))
  if (memory !== undefined && memory.length !== memoryValues)
    return Effect.fail(invalidInput("pieces", "the memory is of another model"))
  return Effect.succeed({
    samples: s16ToF32(samples),
    memory: memory?.slice() ?? new Float32Array(memoryValues),
    scores: new Float32Array(samples.length / speechStepSamples),
  })
}

interface Graph {
  readonly session: OnnxSession.OnnxSession
  readonly input: OnnxSession.TensorInfo
  readonly state: OnnxSession.TensorInfo
  readonly takesRate: boolean
  /** Rows of one call. */
  readonly mostRows: number
}

const tensorOf = (
  { session }: Graph,
  info: OnnxSession.TensorInfo,
  values: Float32Array,
  dims: ReadonlyArray<number>,
) => {
  const tensor = numeric(info.type, values, dims)
  return tensor === undefined
    ? Effect.fail(loadFailed("model", `${session.file}: its ${info.name} is of type ${info.type}`))
    : Effect.succeed(tensor)
}

const layerOf = (memory: Float32Array, layer: number): Float32Array => {
  const from = contextSamples + layer * stateWidth
  return memory.subarray(from, from + stateWidth)
}

/** Step number `step` of all rows in one call; each row's memory and scores are written. */
const runStep = Effect.fnUntraced(function* (
  graph: Graph,
  rows: ReadonlyArray<Row>,
  step: number,
): Effect.fn.Return<void, EngineError> {
  const count = rows.length
  const input = new Float32Array(count * inputSamples)
  const state = new Float32Array(count * stateValues)
  for (const [i, { memory, samples }] of rows.entries()) {
    const at = step * speechStepSamples
    input.set(memory.subarray(0, contextSamples), i * inputSamples)
    input.set(samples.subarray(at, at + speechStepSamples), i * inputSamples + contextSamples)
    for (const layer of [0, 1]) state.set(layerOf(memory, layer), (layer * count + i) * stateWidth)
  }
  const results = yield* graph.session.run({
    [graph.input.name]: yield* tensorOf(graph, graph.input, input, [count, inputSamples]),
    [graph.state.name]: yield* tensorOf(graph, graph.state, state, [2, count, stateWidth]),
    ...(graph.takesRate ? { sr: int64([rateHz], []) } : {}),
  })
  const scores = toFloat32(results.output!)
  const next = toFloat32(results.stateN!)
  if (scores.length !== count || next.length !== count * stateValues) {
    return yield* callFailed(
      `${graph.session.file} gave ${scores.length} scores and ${next.length} values of state for ${count} rows`,
    )
  }
  for (const [i, { memory, scores: own }] of rows.entries()) {
    own[step] = scores[i]!
    memory.set(input.subarray((i + 1) * inputSamples - contextSamples, (i + 1) * inputSamples))
    for (const layer of [0, 1]) {
      const from = (layer * count + i) * stateWidth
      layerOf(memory, layer).set(next.subarray(from, from + stateWidth))
    }
  }
})

const detect = Effect.fnUntraced(function* (
  graph: Graph,
  { pieces }: DetectRequest,
  out: Outlet<"detection">,
): Effect.fn.Return<DetectEnd, EngineError> {
  const rows = yield* Effect.forEach(pieces, rowOf)
  out.started({ pieces: pieces.length })
  const steps = Math.max(...rows.map(({ scores }) => scores.length))
  for (let step = 0; step < steps; step++) {
    const left = rows.filter(({ scores }) => scores.length > step)
    for (let at = 0; at < left.length; at += graph.mostRows)
      yield* runStep(graph, left.slice(at, at + graph.mostRows), step)
  }
  for (const { memory, scores } of rows) out.push({ scores, memory })
  return { pieces: pieces.length }
})

/** Rows of one call of a graph whose batch is open. A guess: more than the sessions that are due within a step. */
const openBatch = 64

const opened = Effect.fnUntraced(function* (
  spec: EngineSpec,
): Effect.fn.Return<Graph, EngineError, Scope.Scope> {
  const path = yield* fileOf(spec, "model")
  const session = yield* OnnxSession.open(path, yield* optionsOf(spec))
  const { file, inputs } = session
  const refused = (problem: string) => loadFailed("model", `${file} ${problem}`)
  if (inputs.has("h") && inputs.has("c"))
    return yield* refused("is Silero VAD 4 or older; versions 5 and 6 are read")
  const input = yield* OnnxSession.inputNamed(session, ["input"])
  const state = yield* OnnxSession.inputNamed(session, ["state"])
  yield* OnnxSession.outputNamed(session, ["output"])
  yield* OnnxSession.outputNamed(session, ["stateN"])
  const others = [...inputs.keys()].filter((name) => !["input", "state", "sr"].includes(name))
  if (others.length > 0) return yield* refused(`wants ${others.join(", ")} too: it is no Silero VAD`)
  const [batch, samples] = input.shape
  if (typeof samples === "number" && samples !== inputSamples)
    return yield* refused(
      `takes ${samples} samples of a step; at 16 kHz, which this adapter hears, a step has ${inputSamples}. Take the export for 16 kHz`,
    )
  const width = state.shape[2]
  if (typeof width === "number" && width !== stateWidth)
    return yield* refused(`has a state of ${width} values; Silero VAD 5 and 6 have ${stateWidth}`)
  const mostRows = typeof batch === "number" ? Math.max(1, batch) : openBatch
  return { session, input, state, takesRate: inputs.has("sr"), mostRows }
})

/** Runs a step of silence, of two rows where the batch is open: a graph that is mixed, or of another rate, fails here. */
const probe = (graph: Graph): Effect.Effect<void, EngineError> =>
  Effect.gen(function* () {
    const silence = { samples: new Int16Array(speechStepSamples) }
    const rows = yield* Effect.forEach(graph.mostRows > 1 ? [silence, silence] : [silence], rowOf)
    yield* runStep(graph, rows, 0)
    const wrong = rows.flatMap(({ scores }) => [...scores]).find((score) => !(score >= 0 && score <= 1))
    if (wrong !== undefined)
      return yield* loadFailed("model", `${graph.session.file} gives ${wrong}, which is no probability`)
  }).pipe(Effect.mapError(({ detail }) => loadFailed("model", detail)))

export const sileroVadOnnx: EngineDescriptor<"detection"> = {
  adapter: "silero-vad-onnx",
  kind: "detection",
  acquire: Effect.fnUntraced(function* (spec) {
    yield* decodeOptions(DetectionOptions, spec)
    const graph = yield* opened(spec)
    yield* probe(graph)
    const rows = graph.mostRows > 1 ? "" : ", one session a call"
    const engine: DetectionEngine = {
      kind: "detection",
      facts: { detects: "speech", slots: 1, summary: `Silero VAD, steps of 32 ms${rows}` },
      detect: (request, out) => detect(graph, request, out),
    }
    return engine
  }),
}
