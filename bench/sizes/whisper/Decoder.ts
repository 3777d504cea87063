// The merged decoder graph of a Whisper shape: one `If` on `use_cache_branch`, both branches over the same weights,
// input and output embeddings tied. ScriptWeights.ts defines the contents of the weights.
import { Graph } from "../onnx/Graph.ts"
import { type Matrix, type Precision, rowsOf, timesTransposed } from "../onnx/Matrices.ts"
import { attend, type Blocks, gelu, inHeads, layerNorm, project, randomRows } from "./Blocks.ts"
import type { Script } from "./Script.ts"
import { type ScriptWeights, scriptWeights, type Weights } from "./ScriptWeights.ts"
import { headWidth, targetPositions, type WhisperShape } from "./Shapes.ts"

/** Standard deviation of the position embeddings: small, so that the output of layer norm depends mostly on the token. */
const position = 0.005

interface Parts extends Blocks {
  readonly layers: number
  readonly weights: ScriptWeights
  /** Number of dimensions that only the script writes; they are the first ones. */
  readonly reserved: number
  readonly embedding: Matrix
}

const pairNames = ["key", "value"] as const
type Pair = readonly [key: string, value: string]

const namesOf = (layers: number): ReadonlyArray<string> =>
  Array.from({ length: layers }, (_, layer) => layer).flatMap((layer) =>
    (["decoder", "encoder"] as const).flatMap((side) => pairNames.map((part) => `${layer}.${side}.${part}`)),
  )

/** A projection as wide as the model. */
const square = (parts: Parts, x: string, name: string, weights: Weights): string =>
  project(parts, x, { ...weights, name, from: parts.width, to: parts.width })

/** The mask added to attention scores: 0, and -1e9 where a token would attend to a later one. */
const causalMask = (graph: Graph, length: string): string => {
  const sides = graph.op("Concat", [length, length], { axis: 0 })
  const hidden = graph.op("ConstantOfShape", [sides], {
    value: { tensor: { type: "float32", dims: [1], values: [-1e9] } },
  })
  return graph.op("Trilu", [hidden, graph.scalar(1, "int64")], { upper: 1 })
}

interface AttentionOutput {
  readonly x: string
  /** Keys and values for the cache. */
  readonly present: Pair
}

/** Attention of each token to the tokens before it, in the cache (`past`) and in this call, and to itself. */
const selfAttention = (
  parts: Parts,
  x: string,
  name: string,
  past: Pair | undefined,
  mask: string | undefined,
): AttentionOutput => {
  const { graph, weights } = parts
  // No layer has the number -1, so it selects the random weights, which self-attention has in every layer.
  const noLayer = -1
  const normed = layerNorm(parts, x, `${name}_layer_norm`)
  const query = square(parts, normed, `${name}.q_proj`, weights.query(noLayer))
  const key = inHeads(parts, square(parts, normed, `${name}.k_proj`, weights.key(noLayer)))
  const value = inHeads(parts, square(parts, normed, `${name}.v_proj`, weights.value(noLayer)))
  const append = (before: string | undefined, added: string) =>
    before === undefined ? added : graph.op("Concat", [before, added], { axis: 2 })
  const present: Pair = [append(past?.[0], key), append(past?.[1], value)]
  const mixed = attend(parts, query, ...present, mask)
  const written = square(parts, mixed, `${name}.out_proj`, weights.selfOutput)
  return { x: graph.op("Add", [x, written]), present }
}

/** Attention of each token to the encoder's output, whose keys and values are computed once for each window. */
const crossAttention = (
  parts: Parts,
  x: string,
  name: string,
  layer: number,
  past: Pair | undefined,
): AttentionOutput => {
  const { graph, heads, weights } = parts
  const computed = (): Pair => {
    const source = "encoder_hidden_states"
    const key = square(parts, source, `${name}.k_proj`, weights.key(layer))
    const value = square(parts, source, `${name}.v_proj`, weights.value(layer))
    return [inHeads(parts, key), inHeads(parts, value)]
  }
  const pair = past ?? computed()
  const normed = layerNorm(parts, x, `${name}_layer_norm`)
  const query = square(parts, normed, `${name}.q_proj`, weights.query(layer))
  const written = square(parts, attend(parts, query, ...pair), `${name}.out_proj`, weights.crossOutput(layer))
  const added = graph.op("Add", [x, written])
  if (past === undefined) return { x: added, present: pair }
  const empty = graph.op("ConstantOfShape", [graph.ints(0, heads, 1, headWidth)])
  return { x: added, present: [empty, empty] }
}

const feedForward = (parts: Parts, x: string, name: string, layer: number): string => {
  const { graph, weights, width } = parts
  const hidden = 4 * width
  const first = project(parts, layerNorm(parts, x, `${name}.final_layer_norm`), {
    ...weights.feedForwardInput(layer),
    name: `${name}.fc1`,
    from: width,
    to: hidden,
  })
  const second = project(parts, gelu(parts, first), {
    ...weights.feedForwardOutput(layer),
    name: `${name}.fc2`,
    from: hidden,
    to: width,
  })
  return graph.op("Add", [x, second])
}

/** The sum of token and position embeddings. */
const embedded = (parts: Parts, before: string, length: string): string => {
  const { embedding, graph, precision, reserved, width } = parts
  const rows = graph.floats("model.decoder.embed_positions.weight", [targetPositions, width], () =>
    randomRows("positions", targetPositions, width, position, reserved),
  )
  const ownRows = graph.op("Slice", [rows, before, graph.op("Add", [before, length]), graph.ints(0)])
  return graph.op("Add", [rowsOf(graph, "input_ids", embedding, precision), ownRows])
}

/** One of the two branches of the decoder: from an empty cache, or one token after the cached ones. */
const branch = (outer: Parts, cached: boolean): Graph => {
  const graph = outer.graph.branch(cached ? "cached" : "first")
  const parts: Parts = { ...outer, graph }
  const { embedding, layers, precision, weights } = parts
  const length = graph.op("Shape", ["input_ids"], { start: 1, end: 2 })
  const before = cached
    ? graph.op("Shape", ["past_key_values.0.decoder.key"], { start: 2, end: 3 })
    : graph.ints(0)
  const mask = cached ? undefined : causalMask(graph, length)
  let x = embedded(parts, before, length)
  const presents: Array<string> = []
  for (let layer = 0; layer < layers; layer++) {
    const name = `model.decoder.layers.${layer}`
    const past = (side: string): Pair | undefined =>
      cached ? [`past_key_values.${layer}.${side}.key`, `past_key_values.${layer}.${side}.value`] : undefined
    const own = selfAttention(parts, x, `${name}.self_attn`, past("decoder"), mask)
    const cross = crossAttention(parts, own.x, `${name}.encoder_attn`, layer, past("encoder"))
    presents.push(...own.present, ...cross.present)
    x = feedForward(parts, cross.x, name, layer)
  }
  const last = layerNorm(parts, x, "model.decoder.layer_norm", weights.gain)
  for (const value of [timesTransposed(graph, last, embedding, precision), ...presents]) {
    graph.output(graph.op("Identity", [value]), "float32")
  }
  return graph
}

export const decoderGraph = (
  shape: WhisperShape,
  vocabularySize: number,
  script: Script,
  precision: Precision,
): Graph => {
  const { decoderLayers: layers, heads, width } = shape
  const graph = new Graph()
  graph.input("input_ids", "int64", ["batch_size", "decoder_sequence_length"])
  graph.input("encoder_hidden_states", "float32", ["batch_size", "encoder_sequence_length", width])
  const names = namesOf(layers)
  for (const name of names) {
    const length = name.includes("encoder") ? "encoder_sequence_length_out" : "past_decoder_sequence_length"
    graph.input(`past_key_values.${name}`, "float32", ["batch_size", heads, length, headWidth])
  }
  graph.input("use_cache_branch", "bool", [1])
  const weights = scriptWeights(script, width)
  const embedding = weights.embedding(vocabularySize)
  const { reserved } = script
  const parts: Parts = { graph, precision, width, heads, layers, weights, reserved, embedding }
  const branches = { then_branch: branch(parts, true), else_branch: branch(parts, false) }
  const presents = names.map((name) => `present.${name}`)
  graph.op("If", [graph.op("Squeeze", ["use_cache_branch"])], branches, ["logits", ...presents])
  graph.output("logits", "float32", ["batch_size", "decoder_sequence_length", vocabularySize])
  for (const name of presents) {
    const length = name.includes("encoder") ? "encoder_sequence_length_out" : "decoder_sequence_length_out"
    graph.output(name, "float32", ["batch_size_out", heads, length, headWidth])
  }
  return graph
}
