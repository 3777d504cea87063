// Exports of detection models with the published names, shapes and types, and weights made by hand, which really hear:
// - Silero VAD: loud steps are speech. The probability also depends on the step's context, which is 0 in the first step, and on the state, which
//   counts the steps, so that a context or a state that is not fed back shows.
// - Smart Turn: a turn is complete if its last half second has more energy below 1 kHz than above.
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { EngineSpec } from "#engines/protocol/Engine.ts"
import { ToyGraph } from "./ToyOnnxGraph.ts"

export interface ToySileroOptions {
  /** 512 new samples at 16 kHz behind a context of 64; 256 behind 32 at 8 kHz, which the adapter does not hear. */
  readonly rateHz?: 16_000 | 8_000
  /** Whether the rate is an input. */
  readonly takesRate?: boolean
  /** Of one row only, as some exports are. */
  readonly oneRow?: boolean
  /** Version 4 has two states of another form. */
  readonly version?: 4 | 5
}

/** Mean loudness (of 1) that is speech with a probability of a half, and how fast that rises. */
const toyLoudness = 0.02
const toyGain = 400

/** What the graph computes for one step. `steps`: steps before it. */
export const toySpeech = (loud: number, contextLoud: number, steps: number): number =>
  (1 / (1 + Math.exp(-toyGain * (loud - toyLoudness)))) *
  (contextLoud / (contextLoud + 1e-6)) *
  (0.9 + 0.1 * Math.cos(steps))

export const toySilero = ({
  oneRow = false,
  rateHz = 16_000,
  takesRate = true,
  version = 5,
}: ToySileroOptions = {}): Uint8Array => {
  const graph = new ToyGraph()
  const isFast = rateHz === 16_000
  const [context, samples] = isFast ? [64, 512] : [32, 256]
  const batch = oneRow ? 1 : "batch"
  const input = graph.input("input", "float32", [batch, oneRow ? context + samples : "samples"])
  const one = graph.constant("float32", [1], [1])
  const added = takesRate
    ? graph.op("Div", [
        graph.cast(graph.input("sr", "int64", []), "float32"),
        graph.constant("float32", [1], [rateHz]),
      ])
    : one
  if (version === 4) {
    for (const name of ["h", "c"]) {
      const state = graph.input(name, "float32", [2, "batch", 64])
      graph.output(`${name}n`, "float32", [2, "batch", 64], graph.op("Add", [state, added]))
    }
    graph.output(
      "output",
      "float32",
      ["batch", 1],
      graph.op("ReduceMax", [input], { axes: [1], keepdims: 1 }),
    )
    return graph.encodeModel()
  }
  const state = graph.input("state", "float32", [2, batch, 128])
  const loudness = (from: number, to: number) => {
    const part = graph.op("Slice", [input, graph.ints(from), graph.ints(to), graph.ints(1)])
    const sum = graph.op("ReduceSum", [graph.op("Abs", [part]), graph.ints(1)], { keepdims: 1 })
    return graph.op("Div", [sum, graph.constant("float32", [1], [to - from])])
  }
  const loud = loudness(context, context + samples)
  const before = loudness(0, context)
  const first = graph.op("Slice", [state, graph.ints(0, 0), graph.ints(1, 1), graph.ints(0, 2)])
  const steps = graph.op("Reshape", [first, graph.ints(-1, 1)])
  const raised = graph.op("Mul", [
    graph.op("Sub", [loud, graph.constant("float32", [1], [toyLoudness])]),
    graph.constant("float32", [1], [toyGain]),
  ])
  const hasContext = graph.op("Div", [
    before,
    graph.op("Add", [before, graph.constant("float32", [1], [1e-6])]),
  ])
  const byState = graph.op("Add", [
    graph.constant("float32", [1], [0.9]),
    graph.op("Mul", [graph.op("Cos", [steps]), graph.constant("float32", [1], [0.1])]),
  ])
  const score = graph.op("Mul", [graph.op("Mul", [graph.op("Sigmoid", [raised]), hasContext]), byState])
  graph.output("output", "float32", [batch, 1], score)
  graph.output("stateN", "float32", [2, batch, 128], graph.op("Add", [state, added]))
  return graph.encodeModel()
}

/** Mel bins below 1 kHz, of 80 up to 8 kHz. */
const lowBins = 27

/** `frames`: 800, which are 8 s; another number is no Smart Turn 3. */
export const toySmartTurn = (frames = 800): Uint8Array => {
  const graph = new ToyGraph()
  const features = graph.input("input_features", "float32", ["batch", 80, frames])
  const meanOf = (from: number, to: number) => {
    const starts = graph.ints(from, frames - 50)
    const part = graph.op("Slice", [features, starts, graph.ints(to, frames), graph.ints(1, 2)])
    const sum = graph.op("ReduceSum", [part, graph.ints(1, 2)], { keepdims: 0 })
    return graph.op("Div", [sum, graph.constant("float32", [1], [(to - from) * 50])])
  }
  const difference = graph.op("Sub", [meanOf(0, lowBins), meanOf(lowBins, 80)])
  const raised = graph.op("Mul", [difference, graph.constant("float32", [1], [40])])
  const score = graph.op("Reshape", [graph.op("Sigmoid", [raised]), graph.ints(-1, 1)])
  graph.output("logits", "float32", ["batch", 1], score)
  return graph.encodeModel()
}

export interface ToyDetection {
  /** To be removed. */
  readonly folder: string
  readonly spec: EngineSpec
}

const written = (adapter: string, file: string, bytes: Uint8Array): ToyDetection => {
  const folder = mkdtempSync(join(tmpdir(), "edgewise-detection-"))
  const model = join(folder, file)
  writeFileSync(model, bytes)
  return { folder, spec: { modelId: "test", adapter, files: { model }, options: {}, threads: 1 } }
}

export const writtenSilero = (options?: ToySileroOptions): ToyDetection =>
  written("silero-vad-onnx", "silero_vad.onnx", toySilero(options))

export const writtenSmartTurn = (frames?: number): ToyDetection =>
  written("smart-turn-onnx", "smart-turn-v3.2-cpu.onnx", toySmartTurn(frames))
