// The parts that Whisper's encoder and decoder share: layer norm, projections with bias, attention, GELU. Names follow
// the published weights.
import type { Graph } from "../onnx/Graph.ts"
import { type Matrix, normal, type Precision, type ProductPrecision, times } from "../onnx/Matrices.ts"
import { headWidth } from "./Shapes.ts"

export type Edit = (values: Float32Array) => void

export interface Blocks {
  readonly graph: Graph
  readonly precision: Precision
  readonly width: number
  readonly heads: number
}

/** Where every weight that is not float32 belongs to a product. */
export interface ProductBlocks extends Omit<Blocks, "precision"> {
  readonly precision: ProductPrecision
}

export const layerNorm = ({ graph, width }: ProductBlocks, x: string, name: string, gain = 1): string =>
  graph.op(
    "LayerNormalization",
    [
      x,
      graph.floats(`${name}.weight`, [width], () => new Float32Array(width).fill(gain)),
      graph.floats(`${name}.bias`, [width], () => new Float32Array(width)),
    ],
    { axis: -1, epsilon: { float: 1e-5 } },
  )

export interface Projection {
  readonly name: string
  readonly to: number
  readonly from: number
  readonly deviation: number
  readonly most?: number
  readonly edit?: Edit
  /** Absent: the projection has no bias, like the published key projections. */
  readonly bias?: Edit
}

export const noBias: Edit = () => {}

export const project = ({ graph, precision }: ProductBlocks, x: string, projection: Projection): string => {
  const { bias, deviation, edit, from, most, name, to } = projection
  const matrix: Matrix = {
    name: `${name}.weight`,
    dims: [from, to],
    deviation,
    ...(most === undefined ? {} : { most }),
    ...(edit === undefined ? {} : { edit }),
  }
  const product = times(graph, x, matrix, precision)
  if (bias === undefined) return product
  const values = () => {
    const all = new Float32Array(to)
    bias(all)
    return all
  }
  return graph.op("Add", [graph.floats(`${name}.bias`, [to], values), product])
}

/** Reshapes [batch, n, width] to [batch, heads, n, head width]. */
export const inHeads = ({ graph, heads }: Blocks, x: string): string =>
  graph.op("Transpose", [graph.op("Reshape", [x, graph.ints(0, -1, heads, headWidth)])], {
    perm: [0, 2, 1, 3],
  })

/** Attention. `query` is [batch, n, width], not yet split into heads; keys and values are split already. */
export const attend = (blocks: Blocks, query: string, key: string, value: string, mask?: string): string => {
  const { graph, width } = blocks
  const scaled = inHeads(blocks, graph.op("Mul", [query, graph.scalar(headWidth ** -0.5)]))
  const products = graph.op("MatMul", [scaled, graph.op("Transpose", [key], { perm: [0, 1, 3, 2] })])
  const masked = mask === undefined ? products : graph.op("Add", [products, mask])
  const mixed = graph.op("MatMul", [graph.op("Softmax", [masked], { axis: -1 }), value])
  return graph.op("Reshape", [
    graph.op("Transpose", [mixed], { perm: [0, 2, 1, 3] }),
    graph.ints(0, -1, width),
  ])
}

/** GELU as several operators, as exporters to older opsets write it; ONNX Runtime fuses them into one. */
export const gelu = ({ graph }: Blocks, x: string): string => {
  const error = graph.op("Erf", [graph.op("Div", [x, graph.scalar(Math.SQRT2)])])
  const twice = graph.op("Mul", [x, graph.op("Add", [error, graph.scalar(1)])])
  return graph.op("Mul", [twice, graph.scalar(0.5)])
}

/** Standard deviation of input weights, as in freshly initialised networks. */
export const reading = 0.02

/**
 * Weights that write to the residual stream except for its reserved dimensions. Choose the deviation so small that the hand-set
 * values there hardly change.
 */
export const writing = (
  deviation: number,
  reserved: number,
  columns: number,
): Pick<Projection, "deviation" | "edit"> => ({
  deviation,
  edit: (values) => clearColumns(values, columns, reserved),
})

/** Sets the first `reserved` columns to 0. */
const clearColumns = (values: Float32Array, columns: number, reserved: number): void => {
  for (let row = 0; row < values.length; row += columns) values.fill(0, row, row + reserved)
}

/** Sets one column to 0. */
export const clearColumn = (values: Float32Array, columns: number, column: number): void => {
  for (let at = column; at < values.length; at += columns) values[at] = 0
}

export const randomRows = (
  name: string,
  rows: number,
  columns: number,
  deviation: number,
  reserved: number,
) => {
  const values = normal(name, rows * columns, deviation)
  clearColumns(values, columns, reserved)
  return values
}
