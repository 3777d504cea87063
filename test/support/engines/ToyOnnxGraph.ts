// A builder of small ONNX graphs for tests. It names intermediate values. Dimensions are numbers or symbolic names.
import {
  type Attribute,
  type Bytes,
  bytes,
  concat,
  type Dim,
  type ElementType,
  elementTypes,
  externalData,
  modelHead,
  modelTail,
  nodeProto,
  rawData,
  tensorHead,
  text,
  valueInfo,
} from "../../../bench/sizes/onnx/Messages.ts"

export type { Dim, ElementType } from "../../../bench/sizes/onnx/Messages.ts"

/** A tensor's dimensions, type and name, and its values. */
interface TensorParts {
  readonly head: Bytes
  readonly raw: Bytes
}

/** The fields that give a tensor its values. */
type ValuesOf = (raw: Bytes) => Bytes

let serial = 0

export class ToyGraph {
  readonly #nodes: Array<Bytes> = []
  readonly #initializers: Array<TensorParts> = []
  readonly #inputs: Array<Bytes> = []
  readonly #outputs: Array<Bytes> = []

  input(name: string, type: ElementType, dims: ReadonlyArray<Dim>): string {
    this.#inputs.push(valueInfo(name, type, dims))
    return name
  }

  /** Declares an output; `from`, if given, is copied to it. */
  output(name: string, type: ElementType, dims?: ReadonlyArray<Dim>, from?: string): void {
    if (from !== undefined) this.op("Identity", [from], {}, [name])
    this.#outputs.push(valueInfo(name, type, dims))
  }

  constant(type: ElementType, dims: ReadonlyArray<number>, values: ArrayLike<number>): string {
    const name = `constant_${serial++}`
    this.#initializers.push({ head: tensorHead(name, type, dims), raw: rawData(type, values) })
    return name
  }

  /** A constant as a node, not as an initializer. */
  constantNode(type: ElementType, dims: ReadonlyArray<number>, values: ArrayLike<number>): string {
    return this.op("Constant", [], { value: { tensor: { type, dims, values } } })
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
    this.#nodes.push(nodeProto(`node_${serial++}`, type, inputs, outputs, attributes))
    return outputs[0]!
  }

  cast(from: string, type: ElementType): string {
    return this.op("Cast", [from], { to: elementTypes[type] })
  }

  /**
   * The model without the values of its larger constants, and the content of a second file with these values, as in exports of
   * more than 2 GB.
   */
  encodeExternal(location: string, smallest = 1_024): { readonly model: Bytes; readonly data: Bytes } {
    const data: Array<Bytes> = []
    let at = 0
    const valuesOf: ValuesOf = (raw) => {
      if (raw.length < smallest) return bytes(9, raw)
      const values = externalData(location, at, raw.length)
      data.push(raw)
      at += raw.length
      return values
    }
    return { model: this.encodeModel(valuesOf), data: concat(data) }
  }

  encodeGraph(valuesOf: ValuesOf = (raw) => bytes(9, raw)): Bytes {
    return concat([
      ...this.#nodes.map((node) => bytes(1, node)),
      text(2, "toy"),
      ...this.#initializers.map(({ head, raw }) => bytes(5, concat([head, valuesOf(raw)]))),
      ...this.#inputs.map((info) => bytes(11, info)),
      ...this.#outputs.map((info) => bytes(12, info)),
    ])
  }

  /** A whole model file. */
  encodeModel(valuesOf?: ValuesOf): Bytes {
    return concat([modelHead, bytes(7, this.encodeGraph(valuesOf)), modelTail(new Set())])
  }
}
