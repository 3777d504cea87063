// Edits the encoder of a published Whisper export so that it also takes audio shorter than 30 s. Such a graph adds a
// table of 1,500 positions to the output of the convolutions, and fails there for any other length: the edit cuts the
// table to the actual length. For the full length the result is the same.
import type { GraphEdit, NewNode } from "../../shared/onnx/GraphEdit.ts"
import { edited } from "../../shared/onnx/GraphEdit.ts"
import {
  elementTypes,
  type GraphNode,
  type GraphOutline,
  withOutline,
} from "../../shared/onnx/GraphOutline.ts"

/** Operators between the table and the addition: exports and quantizers differ. */
const passesTable: ReadonlySet<string> = new Set([
  "Cast",
  "DequantizeLinear",
  "Gather",
  "Identity",
  "Unsqueeze",
])

const isTable = (dims: ReadonlyArray<number>, positions: number, width: number): boolean =>
  dims.at(-1) === width && dims.at(-2) === positions && dims.slice(0, -2).every((dim) => dim === 1)

interface Addition {
  readonly node: GraphNode
  /** Index of the input that is the table. */
  readonly table: number
}

/** The node that adds the table; undefined unless there is exactly one. */
const additionOf = (outline: GraphOutline, positions: number, width: number): Addition | undefined => {
  const tables = new Set(
    outline.initializers.filter(({ dims }) => isTable(dims, positions, width)).map(({ name }) => name),
  )
  for (const { outputs, value } of outline.nodes) {
    if (value !== undefined && isTable(value.dims, positions, width)) tables.add(outputs[0]!)
  }
  const found: Array<Addition> = []
  // Nodes are in the order of computation.
  for (const node of outline.nodes) {
    const table = node.inputs.findIndex((name) => tables.has(name))
    if (table < 0) continue
    if (node.type === "Add" && node.inputs.length === 2) found.push({ node, table })
    else if (passesTable.has(node.type) && table === 0) tables.add(node.outputs[0]!)
    else return undefined
  }
  return found.length === 1 ? found[0] : undefined
}

const names = {
  shape: "edgewise_positions_shape",
  length: "edgewise_positions_length",
  table: "edgewise_positions_table",
  secondLast: "edgewise_second_last",
  last: "edgewise_last",
  first: "edgewise_first",
  inferred: "edgewise_inferred",
}

const cutNodes = ({ node, table }: Addition): ReadonlyArray<NewNode> => [
  { type: "Shape", inputs: [node.inputs[1 - table]!], outputs: [names.shape] },
  {
    type: "Slice",
    inputs: [names.shape, names.secondLast, names.last, names.first],
    outputs: [names.length],
  },
  {
    type: "Slice",
    inputs: [node.inputs[table]!, names.first, names.length, names.secondLast],
    outputs: [names.table],
  },
]

/**
 * Exports that were traced with one length contain it in their reshapes: that dimension becomes -1 (inferred). A shape
 * that already has an inferred dimension stays as it is.
 */
const reshapeInputs = (
  { initializers, nodes }: GraphOutline,
  positions: number,
): ReadonlyArray<readonly [GraphNode, ReadonlyMap<number, string>]> => {
  const integers = new Map(
    initializers.flatMap(({ integers: values, name }) => (values === undefined ? [] : [[name, values]])),
  )
  const makers = new Map<string, GraphNode>()
  for (const node of nodes) {
    for (const output of node.outputs) makers.set(output, node)
    if (node.value?.integers !== undefined) integers.set(node.outputs[0]!, node.value.integers)
  }
  return nodes.flatMap((node) => {
    if (node.type !== "Reshape") return []
    const concat = makers.get(node.inputs[1] ?? "")
    if (concat?.type !== "Concat") return []
    const parts = concat.inputs.map((name) => integers.get(name) ?? [])
    const at = parts.findIndex((values) => values.length === 1 && values[0] === positions)
    const isOnly = parts.flat().filter((value) => value === positions || value < 0).length === 1
    return at >= 0 && isOnly ? [[concat, new Map([[at, names.inferred]])] as const] : []
  })
}

/** Names of the symbolic lengths of the changed graph's input and output. */
const lengthNames = { frames: "edgewise_frames", positions: "edgewise_positions" }

const lengthsOf = ({ inputs, outputs }: GraphOutline, frames: number, positions: number) => {
  const lengths = new Map<string, ReadonlyMap<number, string>>()
  const free = (values: GraphOutline["inputs"], length: number, name: string) => {
    for (const value of values) {
      const axis = value.dims.lastIndexOf(length)
      if (axis >= 0) lengths.set(value.name, new Map([[axis, name]]))
    }
  }
  free(inputs, frames, lengthNames.frames)
  free(outputs, positions, lengthNames.positions)
  return lengths
}

/**
 * Names the length of every value whose length ONNX Runtime cannot infer: after the convolutions and after reshapes.
 * Without names it treats no two lengths as equal and reuses no buffer, and a whole window takes twice as long
 * (measured at base shape: 1 GB of fresh memory a window).
 */
const valuesOf = (outline: GraphOutline, { node }: Addition, { positions, width }: EncoderShape) => {
  const integers = new Map(outline.initializers.map(({ integers: values, name }) => [name, values]))
  for (const { outputs, value } of outline.nodes) integers.set(outputs[0]!, value?.integers)
  const table = outline.initializers.find(({ dims }) => isTable(dims, positions, width))
  const element = table?.type === elementTypes.float16 ? elementTypes.float16 : elementTypes.float32
  const named = { element, dims: ["", lengthNames.positions, ""] }
  const values = new Map([[node.outputs[0]!, named]])
  for (const { inputs, outputs, type } of outline.nodes) {
    const shape = type === "Reshape" ? (integers.get(inputs[1]!) ?? []) : []
    const [batch, length, ...rest] = shape
    // Only [batch, length, width] or [batch, length, heads, head width].
    if (batch !== 0 || length !== -1 || rest.reduce((all, size) => all * size, 1) !== width) continue
    values.set(outputs[0]!, { element, dims: ["", lengthNames.positions, ...rest.map(() => "")] })
  }
  return values
}

export interface EncoderShape {
  /** Encoder outputs of a window, 1,500. */
  readonly positions: number
  readonly width: number
  /** Mel frames of a window, 3,000. */
  readonly frames: number
}

const shortAudioEdit = (outline: GraphOutline, shape: EncoderShape): GraphEdit | undefined => {
  const addition = additionOf(outline, shape.positions, shape.width)
  if (addition === undefined) return undefined
  return {
    inputs: new Map([
      ...reshapeInputs(outline, shape.positions),
      [addition.node, new Map([[addition.table, names.table]])] as const,
    ]),
    before: new Map([[addition.node, cutNodes(addition)]]),
    integers: {
      [names.secondLast]: [-2],
      [names.last]: [-1],
      [names.first]: [0],
      [names.inferred]: [-1],
    },
    lengths: lengthsOf(outline, shape.frames, shape.positions),
    values: valuesOf(outline, addition, shape),
  }
}

/** The changed graph; undefined if it has no such table or uses it differently. Rejects on damaged files. */
export const shortAudioGraph = (path: string, shape: EncoderShape): Promise<Uint8Array | undefined> =>
  withOutline(path, async (outline, reader) => {
    const edit = shortAudioEdit(outline, shape)
    return edit === undefined ? undefined : edited(path, outline, reader, edit)
  })
