// A small Whisper encoder in the shapes of published exports: two convolutions, a table of 1,500 positions, one
// attention layer and its projections. The forms that exporters and quantizers give the table and the reshapes are
// options.
import { type Dim, ToyGraph } from "../../../support/engines/ToyOnnxGraph.ts"

export const toyShape = { positions: 1_500, width: 32, frames: 3_000 }
export const toyMelBins = 8

export interface ToyEncoderOptions {
  /** How the position table reaches its addition. */
  readonly table?: "direct" | "gathered" | "quantized" | "half" | "constant" | "twice" | "none"
  /** Reshapes that name 1,500 as exports traced with one length do. */
  readonly fixedReshapes?: boolean
  readonly length?: Dim
}

const values = (count: number, step: number): Float32Array =>
  Float32Array.from({ length: count }, (_, i) => Math.sin(1 + i * step) * 0.2)

const tableOf = (graph: ToyGraph, form: NonNullable<ToyEncoderOptions["table"]>): string => {
  const { positions, width } = toyShape
  const count = positions * width
  const table = () => graph.constant("float32", [positions, width], values(count, 0.37))
  switch (form) {
    case "gathered":
      return graph.op("Gather", [table(), graph.ints(...Array.from({ length: positions }, (_, i) => i))])
    case "quantized": {
      const bytes = graph.constant(
        "int32",
        [positions, width],
        Array.from({ length: count }, (_, i) => (i * 7) % 255),
      )
      const scale = graph.constant("float32", [], [0.001])
      const zero = graph.constant("int32", [], [0])
      return graph.op("DequantizeLinear", [bytes, scale, zero])
    }
    case "half":
      return graph.cast(graph.cast(table(), "float16"), "float32")
    case "constant":
      return graph.constantNode("float32", [1, positions, width], values(count, 0.37))
    default:
      return table()
  }
}

export const toyEncoder = ({
  fixedReshapes = false,
  length = toyShape.frames,
  table = "direct",
}: ToyEncoderOptions = {}): ToyGraph => {
  const { positions, width } = toyShape
  const heads = 2
  const graph = new ToyGraph()
  graph.input("input_features", "float32", ["batch_size", toyMelBins, length])
  // Of a length that puts the weights behind it at odd places of the file.
  graph.constant("bool", [3], [1, 0, 1])
  const matrix = (from: number, to: number, step: number) =>
    graph.constant("float32", [from, to], values(from * to, step))
  const convolved = (x: string, from: number, stride: number) =>
    graph.op(
      "Conv",
      [x, graph.constant("float32", [width, from, 3], values(width * from * 3, 0.11 * stride))],
      {
        kernel_shape: [3],
        pads: [1, 1],
        strides: [stride],
      },
    )
  const both = convolved(graph.op("Tanh", [convolved("input_features", toyMelBins, 1)]), width, 2)
  const frames = graph.op("Transpose", [both], { perm: [0, 2, 1] })
  const positioned = (x: string): string =>
    graph.op("Add", [x, tableOf(graph, table === "twice" ? "direct" : table)])
  let x = table === "none" ? frames : positioned(frames)
  if (table === "twice") x = positioned(x)
  const shape = (...last: ReadonlyArray<number>) =>
    fixedReshapes
      ? graph.op("Concat", [graph.ints(1), graph.ints(positions), ...last.map((size) => graph.ints(size))], {
          axis: 0,
        })
      : graph.ints(0, -1, ...last)
  const inHeads = (step: number) =>
    graph.op(
      "Transpose",
      [
        graph.op("Reshape", [
          graph.op("MatMul", [x, matrix(width, width, step)]),
          shape(heads, width / heads),
        ]),
      ],
      { perm: [0, 2, 1, 3] },
    )
  const keys = graph.op("Transpose", [inHeads(0.23)], { perm: [0, 1, 3, 2] })
  const scores = graph.op("Softmax", [graph.op("MatMul", [inHeads(0.19), keys])], { axis: -1 })
  const mixed = graph.op("Transpose", [graph.op("MatMul", [scores, inHeads(0.29)])], { perm: [0, 2, 1, 3] })
  const joined = graph.op("Reshape", [mixed, shape(width)])
  const outputLength = typeof length === "number" ? positions : "positions"
  graph.output(
    "last_hidden_state",
    "float32",
    ["batch_size", outputLength, width],
    graph.op("Add", [x, joined]),
  )
  return graph
}
