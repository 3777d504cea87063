// Random-weight graphs of the Kokoro contract, written to a temporary folder: the published input and output names
// in both variants. 240 samples for each symbol and no pauses inside, so a piece's length gives its number of symbols.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { mkdir } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect } from "effect"
import { type ElementType, ToyGraph } from "../../support/engines/ToyOnnxGraph.ts"

export const samplesPerSymbol = 240

export interface ToyNames {
  readonly ids: "input_ids" | "tokens"
  readonly audio: string
  readonly speed: ElementType
  /** The reference exporter's second output, before the audio. */
  readonly duration: boolean
  /** Draws noise inside the graph, as a plain export of the real vocoder does. */
  readonly random: boolean
}

const published: ToyNames = {
  ids: "input_ids",
  audio: "waveform",
  speed: "float32",
  duration: false,
  random: false,
}

/** Pseudo-random values in (−1, 1) from a seed and an index. */
const noise = (index: number): number => Math.sin(index * 12.9898 + 78.233) * 0.9

const toyModel = (names: ToyNames): Uint8Array => {
  const graph = new ToyGraph()
  const ids = graph.input(names.ids, "int64", [1, "n"])
  const style = graph.input("style", "float32", [1, 256])
  const speed = graph.input("speed", names.speed, [1])
  const table = graph.constant(
    "float32",
    [178, samplesPerSymbol],
    Array.from({ length: 178 * samplesPerSymbol }, (_, i) => noise(i)),
  )
  const mix = graph.constant(
    "float32",
    [256, samplesPerSymbol],
    Array.from({ length: 256 * samplesPerSymbol }, (_, i) => noise(i + 7) / 50),
  )
  const sum = graph.op("Add", [graph.op("Gather", [table, ids]), graph.op("MatMul", [style, mix])])
  const scaled = graph.op("Div", [
    graph.op("Tanh", [sum]),
    names.speed === "float32" ? speed : graph.cast(speed, "float32"),
  ])
  const noisy = names.random ? graph.op("Add", [scaled, graph.op("RandomNormalLike", [scaled])]) : scaled
  if (names.duration) {
    graph.output("duration", "int64", ["m"], graph.op("Reshape", [ids, graph.ints(-1)]))
  }
  graph.output(names.audio, "float32", [1, "samples"], graph.op("Reshape", [noisy, graph.ints(1, -1)]))
  return graph.encodeModel()
}

/** `audio` [1, S] → `style` [1, 256]: the clip's mean size, spread over 256 fixed weights. */
const toyStyleEncoder = (random = false): Uint8Array => {
  const graph = new ToyGraph()
  const audio = graph.input("audio", "float32", [1, "samples"])
  const size = graph.op("ReduceMean", [graph.op("Abs", [audio])], { axes: [1], keepdims: 1 })
  const weights = graph.constant(
    "float32",
    [1, 256],
    Array.from({ length: 256 }, (_, i) => noise(i) * 20),
  )
  const style = graph.op("MatMul", [size, weights])
  graph.output(
    "style",
    "float32",
    [1, 256],
    random ? graph.op("Add", [style, graph.op("RandomUniformLike", [style])]) : style,
  )
  return graph.encodeModel()
}

const allSymbols = ';:,.!?—…"()“” abcdefhijklmnopqstuvwzæðŋɐɑɒɔəɚɛɜɡɪɹɾʃʊʌʒʔˈˌːθᵻ'

const toyTokenizer = (): string =>
  JSON.stringify({
    version: "1.0",
    model: {
      type: "WordLevel",
      vocab: Object.fromEntries([...`$${allSymbols}`].map((symbol, id) => [symbol, id])),
      unk_token: "$",
    },
  })

/** A voice whose every value is `value`. */
const toyVoice = (value: number): Buffer => Buffer.from(new Float32Array(510 * 256).fill(value).buffer)

/** A model folder that lives as long as the scope: model, tokenizer, style encoder and the voices given. */
export const toyFolder = (
  names: Partial<ToyNames> & { readonly randomEncoder?: boolean } = {},
  voices: Readonly<Record<string, number>> = { af_toy: 0.1, bm_toy: -0.3 },
) =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "kokoro-"))),
    (path) => Effect.sync(() => rmSync(path, { recursive: true })),
  ).pipe(
    Effect.tap((path) => Effect.promise(() => mkdir(join(path, "voices")))),
    Effect.map((path) => {
      writeFileSync(join(path, "model.onnx"), toyModel({ ...published, ...names }))
      writeFileSync(join(path, "style_encoder.onnx"), toyStyleEncoder(names.randomEncoder ?? false))
      writeFileSync(join(path, "tokenizer.json"), toyTokenizer())
      for (const [id, value] of Object.entries(voices)) {
        writeFileSync(join(path, "voices", `${id}.bin`), toyVoice(value))
      }
      return {
        model: join(path, "model.onnx"),
        tokenizer: join(path, "tokenizer.json"),
        voices: join(path, "voices"),
        styleEncoder: join(path, "style_encoder.onnx"),
        defaultVoice: join(path, "voices", "af_toy.bin"),
      }
    }),
  )
