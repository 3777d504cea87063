// Small ONNX graphs, so that tests make their models themselves: a builder that names intermediate values. Shapes are
// numbers or symbolic names.
import {
  type Attribute,
  type Bytes,
  bytes,
  concat,
  type Dim,
  ELEMENT,
  type ElementType,
  modelHead,
  modelTail,
  nodeProto,
  tensorProto,
  text,
  valueInfo,
} from "../../bench/sizes/onnx/Messages.ts"

export type { Attribute, Dim, ElementType } from "../../bench/sizes/onnx/Messages.ts"

let serial = 0

export class ToyGraph {
  private readonly nodes: Array<Bytes> = []
  private readonly initializers: Array<Bytes> = []
  private readonly inputs: Array<Bytes> = []
  private readonly outputs: Array<Bytes> = []

  input(name: string, type: ElementType, dims: ReadonlyArray<Dim>): string {
    this.inputs.push(valueInfo(name, type, dims))
    return name
  }

  /** Declares an output; `from`, if given, is copied to it. */
  output(name: string, type: ElementType, dims?: ReadonlyArray<Dim>, from?: string): void {
    if (from !== undefined) this.op("Identity", [from], {}, [name])
    this.outputs.push(valueInfo(name, type, dims))
  }

  constant(type: ElementType, dims: ReadonlyArray<number>, values: ArrayLike<number>): string {
    const name = `constant_${serial++}`
    this.initializers.push(tensorProto(name, type, dims, values))
    return name
  }

  ints(...values: ReadonlyArray<number>): string {
    return this.constant("int64", [values.length], values)
  }

  /** Adds a node; returns its first output. */
  op(
    type: string,
    inputs: ReadonlyArray<string>,
    attributes: Readonly<Record<string, Attribute>> = {},
    outputs: ReadonlyArray<string> = [`value_${serial++}`],
  ): string {
    this.nodes.push(nodeProto(`node_${serial++}`, type, inputs, outputs, attributes))
    return outputs[0]!
  }

  cast(from: string, type: ElementType): string {
    return this.op("Cast", [from], { to: ELEMENT[type] })
  }

  encodeGraph(): Bytes {
    return concat([
      ...this.nodes.map((node) => bytes(1, node)),
      text(2, "toy"),
      ...this.initializers.map((tensor) => bytes(5, tensor)),
      ...this.inputs.map((info) => bytes(11, info)),
      ...this.outputs.map((info) => bytes(12, info)),
    ])
  }

  /** A whole model file. */
  encodeModel(): Bytes {
    return concat([modelHead, bytes(7, this.encodeGraph()), modelTail])
  }
}
