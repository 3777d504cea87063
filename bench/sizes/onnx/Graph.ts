// Builds an ONNX graph node by node. Weights are declared here and computed when the file is written, one at a time, because
// a graph may be larger than the memory. Independent of any model.
import {
  type Attribute,
  type Bytes,
  bytes,
  concat,
  type Dim,
  type ElementType,
  elementTypes,
  nodeProto,
  text,
  valueInfo,
} from "./Messages.ts"

export interface Initializer {
  readonly name: string
  readonly type: ElementType
  readonly dims: ReadonlyArray<number>
  /** Little-endian, row-major. */
  readonly data: () => Bytes
}

export class Graph {
  /** Weights of this graph and of its branches: a branch reads the weights of its outer graph. */
  readonly initializers: Map<string, Initializer>
  /** Domains of the operators besides ONNX's own, in branches too. */
  readonly domains: Set<string>
  readonly #prefix: string
  readonly #nodes: Array<Bytes> = []
  readonly #inputs: Array<Bytes> = []
  readonly #outputs: Array<Bytes> = []
  readonly #quantized = new Map<string, readonly [string, string, string]>()
  #serial = 0

  constructor(prefix = "", outer?: Graph) {
    this.#prefix = prefix
    this.initializers = outer?.initializers ?? new Map()
    this.domains = outer?.domains ?? new Set()
  }

  /** A subgraph for one branch of an `If`. */
  branch(prefix: string): Graph {
    return new Graph(`${prefix}/`, this)
  }

  input(name: string, type: ElementType, dims: ReadonlyArray<Dim>): string {
    this.#inputs.push(valueInfo(name, type, dims))
    return name
  }

  output(name: string, type: ElementType, dims?: ReadonlyArray<Dim>): void {
    this.#outputs.push(valueInfo(name, type, dims))
  }

  /** Adds a node; returns its first output. `type`: an operator of ONNX, or one behind its domain, `com.microsoft.MatMulNBits`. */
  op(
    type: string,
    inputs: ReadonlyArray<string>,
    attributes: Readonly<Record<string, Attribute>> = {},
    outputs: ReadonlyArray<string> = [this.fresh(type)],
  ): string {
    const dot = type.lastIndexOf(".")
    const domain = type.slice(0, Math.max(0, dot))
    if (domain !== "") this.domains.add(domain)
    const name = this.fresh(`node_${type}`)
    this.#nodes.push(nodeProto(name, type.slice(dot + 1), inputs, outputs, attributes, domain))
    return outputs[0]!
  }

  /** A name that no other value has. */
  fresh(what: string): string {
    return `${this.#prefix}${what}_${this.#serial++}`
  }

  ints(...values: ReadonlyArray<number>): string {
    return this.op("Constant", [], { value: { tensor: { type: "int64", dims: [values.length], values } } })
  }

  scalar(value: number, type: ElementType = "float32"): string {
    return this.op("Constant", [], { value: { tensor: { type, dims: [], values: [value] } } })
  }

  /** Declares a weight. A second declaration of the same name returns the first one. */
  weight(name: string, type: ElementType, dims: ReadonlyArray<number>, data: () => Bytes): string {
    if (!this.initializers.has(name)) this.initializers.set(name, { name, type, dims, data })
    return name
  }

  floats(name: string, dims: ReadonlyArray<number>, values: () => Float32Array): string {
    return this.weight(name, "float32", dims, () => new Uint8Array(values().buffer))
  }

  cast(from: string, type: ElementType): string {
    return this.op("Cast", [from], { to: elementTypes[type] })
  }

  /** Quantises `x` to unsigned bytes with its own scale and zero point, once for all operators that read it. */
  quantize(x: string): readonly [quantized: string, scale: string, zeroPoint: string] {
    const known = this.#quantized.get(x)
    if (known !== undefined) return known
    const outputs = [this.fresh("quantized"), this.fresh("scale"), this.fresh("zero_point")] as const
    this.op("DynamicQuantizeLinear", [x], {}, outputs)
    this.#quantized.set(x, outputs)
    return outputs
  }

  /** Nodes and signature without the weights. */
  get body(): Bytes {
    return concat([
      ...this.#nodes.map((node) => bytes(1, node)),
      text(2, this.#prefix === "" ? "main_graph" : this.#prefix.slice(0, -1)),
      ...this.#inputs.map((info) => bytes(11, info)),
      ...this.#outputs.map((info) => bytes(12, info)),
    ])
  }

  encodeGraph(): Bytes {
    return this.body
  }
}
