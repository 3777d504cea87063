// Random weights of Kokoro's shape (82 million parameters) in the files of a published export. Generated once and cached.
//
// Every layer of the published model is present at its size, with random weights; the output is noise of about the duration
// that speech would have. Simplified: the harmonic source uses no random phases and no noise, and the voices are random.
import { copyFile, mkdir, writeFile } from "node:fs/promises"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import { cachedFolder } from "../Cache.ts"
import { Graph } from "../onnx/Graph.ts"
import { normal } from "../onnx/Matrices.ts"
import { writeModel } from "../onnx/ModelFile.ts"
import { alignment, curves, durations, prosody, readSymbols, textEncoder } from "./Front.ts"
import { swapped } from "./Layers.ts"
import { vocoder } from "./Vocoder.ts"

export const kokoroSizes = ["82m"] as const
export type KokoroSize = (typeof kokoroSizes)[number]

/** Increase it with every change that makes other bytes of the same shape. */
const recipeVersion = 1

/** Pitch in Hz: the factor of the random curve, whose values are about 1, and the mean. */
const spreadHz = 20
const middleHz = 180

const kokoroGraph = (): Graph => {
  const graph = new Graph()
  graph.input("input_ids", "int64", [1, "sequence_length"])
  graph.input("style", "float32", [1, 256])
  graph.input("speed", "float32", [1])
  const styles = [graph.fresh("timbre"), graph.fresh("manner")] as const
  graph.op("Split", ["style", graph.ints(128, 128)], { axis: 1 }, styles)
  const [timbre, manner] = styles
  const prosodic = prosody(graph, readSymbols(graph, "input_ids"), manner)
  const aligned = alignment(graph, durations(graph, prosodic, "speed"))
  const expanded = graph.op("MatMul", [swapped(graph, prosodic), aligned])
  const [curve, loudness] = curves(graph, expanded, manner)
  const pitch = graph.op("Add", [graph.op("Mul", [curve, graph.scalar(spreadHz)]), graph.scalar(middleHz)])
  const features = graph.op("MatMul", [textEncoder(graph, "input_ids"), aligned])
  graph.op("Identity", [vocoder(graph, features, pitch, loudness, timbre)], {}, ["waveform"])
  graph.output("waveform", "float32", [1, "num_samples"])
  return graph
}

const voices = ["af_bella", "bf_emma"] as const
/** Rows of a voice file; the number of symbols selects one. */
const styleRows = 510
const demo = (file: string): string =>
  fileURLToPath(new URL(`../../../models/kokoro-demo/${file}`, import.meta.url))

/** The folder of the weights. Missing ones are generated first. */
export const kokoroWeights = (size: KokoroSize): Promise<string> =>
  cachedFolder({
    name: `kokoro-${size}`,
    recipe: { recipeVersion },
    fill: async (folder) => {
      await mkdir(join(folder, "onnx"))
      await mkdir(join(folder, "voices"))
      // The published symbol table, which the built-in weights have too.
      await copyFile(demo("tokenizer.json"), join(folder, "tokenizer.json"))
      for (const voice of voices) {
        const rows = normal(voice, styleRows * 256, 0.3)
        await writeFile(join(folder, `voices/${voice}.bin`), new Uint8Array(rows.buffer))
      }
      await writeModel(join(folder, "onnx/model.onnx"), kokoroGraph())
    },
  })

/** The paths of these weights, by their roles in a catalog entry. */
export const kokoroFiles = async (size: KokoroSize) => {
  const folder = await kokoroWeights(size)
  return {
    model: join(folder, "onnx/model.onnx"),
    tokenizer: join(folder, "tokenizer.json"),
    voices: join(folder, "voices"),
  }
}
