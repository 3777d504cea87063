// A Whisper folder with the published names whose "model" is a table: the next token depends on the sum of all tokens
// in the key/value cache, on their number and on the encoder, so that a decoder loop that loses, doubles or mixes up a
// cache gives another text. `expected` computes the same without ONNX.
import { mkdtempSync, readFileSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import type { EngineSpec } from "#engines/protocol/Engine.ts"
import { choose, seededRandom } from "#engines/shared/listening/Sampling.ts"
import {
  applyTimestampRules,
  suppress,
  suppressControls,
  suppressTimestamps,
} from "#engines/whisper/rules/TimestampRules.ts"
import { type ElementType, ToyGraph } from "../../../support/engines/ToyOnnxGraph.ts"
import { demoFile } from "./demoModel.ts"

const vocabulary = 1773
const rowCount = 61
const layers = 2
const headCount = 2
const modelWidth = 3
const generation = JSON.parse(readFileSync(demoFile("generation_config.json"), "utf8"))
const layout = { endOfText: 256, timestampBegin: 272, maxInitialTimestamp: 50 }

interface Toy {
  /** The toy's own folder; the maker of the toy removes it. */
  readonly folder: string
  readonly spec: EngineSpec
  /** [rowCount][vocabulary] */
  readonly table: ReadonlyArray<Float32Array>
}

export interface ToyOptions {
  readonly seed: number
  /** Added to the logit of end of text. */
  readonly endBias?: number
  /** As in exports made with transformers 4.43 to 4.45. */
  readonly cachePosition?: boolean
  readonly languages?: Readonly<Record<string, number>>
  /** `task_to_id` of generation_config.json, in place of the built-in model's. */
  readonly tasks?: Readonly<Record<string, number>>
  readonly cacheType?: ElementType
  /** Changes the table before it is written. */
  readonly patch?: (table: ReadonlyArray<Float32Array>) => void
  /** With cross attentions: in head 0 of the last layer, position p of the decoder looks at frames 5p to 5p + 4. */
  readonly attention?: boolean
  /** Divides all logits: a table with low probabilities everywhere. */
  readonly flatness?: number
}

/** Silence gives features of −1.5 everywhere, and the encoder −4 times their mean. */
const encoderValue = 6

const encoderGraph = (): ToyGraph => {
  const graph = new ToyGraph()
  graph.input("input_features", "float32", ["batch_size", 80, 3000])
  const mean = graph.op("ReduceMean", ["input_features"], { axes: [1, 2], keepdims: 1 })
  const scale = graph.constant("float32", [1, 1500, 4], new Float32Array(6000).fill(-4))
  graph.output("last_hidden_state", "float32", ["batch_size", 1500, 4], graph.op("Mul", [mean, scale]))
  return graph
}

/** Positions for which the toy has attention, and frames of a window. */
const attended = 120
const frames = 1500

const attentionOf = (): Float32Array => {
  const values = new Float32Array(headCount * attended * frames).fill(1 / frames)
  for (let position = 0; position < attended; position++) {
    const row = values.subarray(position * frames, (position + 1) * frames).fill(0.1 / frames)
    row.fill(0.18, 5 * position, 5 * position + 5)
  }
  return values
}

const decoderGraph = (table: ReadonlyArray<Float32Array>, options: ToyOptions): ToyGraph => {
  const cacheType = options.cacheType ?? "float32"
  const main = new ToyGraph()
  const tableName = main.constant(
    "float32",
    [rowCount, vocabulary],
    Float32Array.from(table.flatMap((row) => [...row])),
  )
  main.input("input_ids", "int64", ["batch_size", "decoder_sequence_length"])
  main.input("encoder_hidden_states", "float32", ["batch_size", "encoder_sequence_length", 4])
  const keys = Array.from({ length: layers }, (_, layer) =>
    ["decoder", "encoder"].flatMap((side) => ["key", "value"].map((part) => `${layer}.${side}.${part}`)),
  ).flat()
  for (const key of keys)
    main.input(`past_key_values.${key}`, cacheType, ["batch_size", headCount, "past", modelWidth])
  main.input("use_cache_branch", "bool", [1])
  if (options.cachePosition === true) main.input("cache_position", "int64", ["decoder_sequence_length"])

  const branch = (cached: boolean): ToyGraph => {
    const graph = new ToyGraph()
    const wide = graph.constant(
      "float32",
      [1, headCount, 1, modelWidth],
      new Float32Array(headCount * modelWidth).fill(1),
    )
    const column = graph.op("Reshape", [graph.cast("input_ids", "float32"), graph.ints(1, 1, -1, 1)])
    const fresh = graph.cast(graph.op("Mul", [column, wide]), cacheType)
    const grown = keys.map((key) => {
      if (key.includes("decoder")) {
        return cached ? graph.op("Concat", [`past_key_values.${key}`, fresh], { axis: 2 }) : fresh
      }
      if (cached) {
        return graph.cast(graph.op("ConstantOfShape", [graph.ints(0, headCount, 1, modelWidth)]), cacheType)
      }
      const first = graph.op("Slice", ["encoder_hidden_states", graph.ints(0), graph.ints(1), graph.ints(2)])
      return graph.cast(
        graph.op("Mul", [graph.op("Reshape", [first, graph.ints(1, 1, -1, 1)]), wide]),
        cacheType,
      )
    })
    const encoderKey = cached ? "past_key_values.1.encoder.value" : grown[keys.indexOf("1.encoder.value")]!
    const decoderKey = graph.cast(grown[keys.indexOf("1.decoder.value")]!, "float32")
    const history = graph.op("Slice", [decoderKey, graph.ints(0, 0), graph.ints(1, 1), graph.ints(1, 3)])
    const sums = graph.op("CumSum", [
      graph.op("Reshape", [history, graph.ints(1, -1)]),
      graph.constant("int64", [], [1]),
    ])
    // The square of the position keeps the table from repeating itself, which would trigger the fallback rules.
    const ones = graph.op("Add", [
      graph.op("Mul", [history, graph.constant("float32", [], [0])]),
      graph.constant("float32", [], [1]),
    ])
    const places = graph.op("CumSum", [
      graph.op("Reshape", [ones, graph.ints(1, -1)]),
      graph.constant("int64", [], [1]),
    ])
    const marked = graph.op("Add", [sums, graph.op("Mul", [places, places])])
    const past =
      options.cachePosition === true
        ? graph.op("Slice", ["cache_position", graph.ints(0), graph.ints(1)])
        : cached
          ? graph.op("Shape", ["past_key_values.0.decoder.key"], { start: 2, end: 3 })
          : graph.ints(0)
    const mine = graph.op("Slice", [marked, past, graph.ints(1 << 30), graph.ints(1)])
    const encoder = graph.op("Reshape", [
      graph.op("Slice", [
        graph.cast(encoderKey, "float32"),
        graph.ints(0, 0, 0, 0),
        graph.ints(1, 1, 1, 1),
        graph.ints(0, 1, 2, 3),
      ]),
      graph.ints(1, 1),
    ])
    const total = graph.cast(graph.op("Round", [graph.op("Add", [mine, encoder])]), "int64")
    const index = graph.op("Mod", [total, graph.ints(rowCount)])
    const suffix = cached ? "then" : "else"
    if (options.attention === true) {
      const all = graph.constant("float32", [1, headCount, attended, frames], attentionOf())
      const length = graph.op("Shape", ["input_ids"], { start: 1, end: 2 })
      const own = graph.op("Slice", [all, graph.ints(0), length, graph.ints(2)])
      for (let layer = 0; layer < layers; layer++)
        graph.output(`cross_attentions.${layer}_${suffix}`, "float32", undefined, own)
    }
    graph.output(`logits_${suffix}`, "float32", undefined, graph.op("Gather", [tableName, index]))
    keys.forEach((key, i) => graph.output(`present.${key}_${suffix}`, cacheType, undefined, grown[i]!))
    return graph
  }

  const attentions =
    options.attention === true ? Array.from({ length: layers }, (_, i) => `cross_attentions.${i}`) : []
  const outputs = [...attentions, "logits", ...keys.map((key) => `present.${key}`)]
  main.op("If", ["use_cache_branch"], { then_branch: branch(true), else_branch: branch(false) }, outputs)
  main.output("logits", "float32", ["batch_size", "decoder_sequence_length", vocabulary])
  for (const name of attentions)
    main.output(name, "float32", ["batch_size", headCount, "decoder_sequence_length", frames])
  for (const key of keys) main.output(`present.${key}`, cacheType, ["batch", headCount, "total", modelWidth])
  return main
}

export const toyWhisper = (options: ToyOptions): Toy => {
  const random = seededRandom(options.seed)
  const table = Array.from({ length: rowCount }, () => {
    // A handful of likely letters and timestamps in each row; the rest far behind.
    const row = new Float32Array(vocabulary).fill(-12)
    for (let i = 0; i < 6; i++) row[64 + Math.floor(26 * random())] = 20 * random()
    for (let i = 0; i < 8; i++) row[272 + Math.floor(1501 * random())] = 7 * random()
    row[256] = 5 * random() + (options.endBias ?? 0)
    return row.map((logit) => logit / (options.flatness ?? 1))
  })
  options.patch?.(table)
  const folder = mkdtempSync(join(tmpdir(), "edgewise-toy-whisper-"))
  const write = (name: string, data: string | Uint8Array) => {
    writeFileSync(join(folder, name), data)
    return join(folder, name)
  }
  const lang_to_id = options.languages ?? { "<|en|>": 258 }
  const spec: EngineSpec = {
    modelId: "stt-toy",
    adapter: "whisper-hf-onnx",
    files: {
      encoder: write("encoder_model.onnx", encoderGraph().encodeModel()),
      decoder: write("decoder_model_merged.onnx", decoderGraph(table, options).encodeModel()),
      config: demoFile("config.json"),
      generation: write(
        "generation_config.json",
        JSON.stringify({
          ...generation,
          lang_to_id,
          task_to_id: options.tasks ?? generation.task_to_id,
          alignment_heads: [[layers - 1, 0]],
        }),
      ),
      preprocessor: demoFile("preprocessor_config.json"),
      tokenizer: demoFile("tokenizer.json"),
      tokenizerConfig: demoFile("tokenizer_config.json"),
    },
    options: {},
    threads: 1,
  }
  return { folder, spec, table }
}

/** The table row that `tokens` alone lead to. */
export const rowAfter = (tokens: ReadonlyArray<number>): number => {
  const sum = tokens.reduce((total, token) => total + token, encoderValue)
  return (sum + tokens.length ** 2) % rowCount
}

export interface Script {
  readonly prompt: ReadonlyArray<number>
  readonly script: ReadonlyArray<number>
}

/** Makes the greedy text of silence after each prompt be its script. @throws where two steps need the same row */
export const scripted =
  (...parts: ReadonlyArray<Script>) =>
  (table: ReadonlyArray<Float32Array>): void => {
    const rows = new Set<number>()
    for (const { prompt, script } of parts) {
      const said = [...prompt]
      for (const token of [...script, layout.endOfText]) {
        const row = rowAfter(said)
        if (rows.has(row)) throw new Error("two steps of these scripts share a row: change a time")
        rows.add(row)
        table[row]!.fill(-12)
        table[row]![token] = 30
        said.push(token)
      }
    }
  }

/** The greedy transcript of silence after `prompt`, computed without ONNX or caches. */
export const expected = (
  toy: Toy,
  prompt: ReadonlyArray<number>,
  options: { readonly timestamps: boolean; readonly limit: number },
): ReadonlyArray<number> => {
  const tokens: Array<number> = []
  while (tokens.length < options.limit) {
    const row = toy.table[rowAfter([...prompt, ...tokens])]!.slice()
    suppressControls(row, layout)
    suppress(row, generation.suppress_tokens)
    if (tokens.length === 0) suppress(row, generation.begin_suppress_tokens)
    if (options.timestamps) applyTimestampRules(row, tokens, layout)
    else suppressTimestamps(row, layout)
    const { token } = choose(row, 0, () => 0)
    if (token === layout.endOfText) break
    tokens.push(token)
  }
  return tokens
}
