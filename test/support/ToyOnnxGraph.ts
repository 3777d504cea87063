// Writes small ONNX graphs, so that tests make their models themselves: the few protobuf messages of onnx.proto3
// that a graph needs, and a builder that names intermediate values. Shapes are numbers or symbolic names.

type Bytes = Uint8Array

const concat = (parts: ReadonlyArray<Bytes>): Bytes => Buffer.concat(parts)

const varint = (value: number | bigint): Bytes => {
  const out: Array<number> = []
  let rest = BigInt.asUintN(64, BigInt(value))
  while (rest > 127n) {
    out.push(Number(rest & 127n) | 128)
    rest >>= 7n
  }
  out.push(Number(rest))
  return Uint8Array.from(out)
}
const integer = (field: number, value: number | bigint) => concat([varint(field << 3), varint(value)])
const bytes = (field: number, value: Bytes) => concat([varint((field << 3) | 2), varint(value.length), value])
const text = (field: number, value: string) => bytes(field, Buffer.from(value, "utf8"))
const float = (field: number, value: number) => {
  const four = Buffer.alloc(4)
  four.writeFloatLE(value)
  return concat([varint((field << 3) | 5), four])
}

/** Element types of onnx.proto3. */
const ELEMENT = { float32: 1, int32: 6, int64: 7, bool: 9, float16: 10 } as const
export type ElementType = keyof typeof ELEMENT
export type Dim = number | string

const rawData = (type: ElementType, values: ArrayLike<number>): Bytes => {
  const list = Array.from(values)
  switch (type) {
    case "float32":
      return new Uint8Array(Float32Array.from(list).buffer)
    case "int32":
      return new Uint8Array(Int32Array.from(list).buffer)
    case "int64":
      return new Uint8Array(BigInt64Array.from(list, BigInt).buffer)
    case "bool":
      return Uint8Array.from(list)
    case "float16":
      throw new Error("write a float32 constant and a Cast")
  }
}

/** A tensor's dimensions, type and name, and its values. */
interface TensorParts {
  readonly head: Bytes
  readonly raw: Bytes
}

/** The fields that give a tensor its values. */
type ValuesOf = (raw: Bytes) => Bytes

const tensorParts = (
  name: string,
  type: ElementType,
  dims: ReadonlyArray<number>,
  values: ArrayLike<number>,
): TensorParts => ({
  head: concat([...dims.map((dim) => integer(1, dim)), integer(2, ELEMENT[type]), text(8, name)]),
  raw: rawData(type, values),
})

const valueInfo = (name: string, type: ElementType, dims: ReadonlyArray<Dim> | undefined): Bytes => {
  const shape = (dims ?? []).map((dim) => bytes(1, typeof dim === "number" ? integer(1, dim) : text(2, dim)))
  const tensorType = concat([
    integer(1, ELEMENT[type]),
    ...(dims === undefined ? [] : [bytes(2, concat(shape))]),
  ])
  return concat([text(1, name), bytes(2, bytes(1, tensorType))])
}

export type Attribute = number | string | ReadonlyArray<number> | { readonly float: number } | ToyGraph

// AttributeProto types of onnx.proto3.
const attributeProto = (name: string, value: Attribute): Bytes => {
  if (value instanceof ToyGraph) return concat([text(1, name), bytes(6, value.encodeGraph()), integer(20, 5)])
  if (typeof value === "number") return concat([text(1, name), integer(3, value), integer(20, 2)])
  if (typeof value === "string") return concat([text(1, name), text(4, value), integer(20, 3)])
  if ("float" in value) return concat([text(1, name), float(2, value.float), integer(20, 1)])
  return concat([text(1, name), ...value.map((item) => integer(8, item)), integer(20, 7)])
}

let serial = 0

export class ToyGraph {
  private readonly nodes: Array<Bytes> = []
  private readonly initializers: Array<TensorParts> = []
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
    this.initializers.push(tensorParts(name, type, dims, values))
    return name
  }

  /** A constant that is a node and no initializer. */
  constantNode(type: ElementType, dims: ReadonlyArray<number>, values: ArrayLike<number>): string {
    const name = `value_${serial++}`
    const { head, raw } = tensorParts(name, type, dims, values)
    const tensor = concat([head, bytes(9, raw)])
    this.nodes.push(
      concat([
        text(2, name),
        text(4, "Constant"),
        bytes(5, concat([text(1, "value"), bytes(5, tensor), integer(20, 4)])),
      ]),
    )
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
    this.nodes.push(
      concat([
        ...inputs.map((name) => text(1, name)),
        ...outputs.map((name) => text(2, name)),
        text(3, `node_${serial++}`),
        text(4, type),
        ...Object.entries(attributes).map(([name, value]) => bytes(5, attributeProto(name, value))),
      ]),
    )
    return outputs[0]!
  }

  cast(from: string, type: ElementType): string {
    return this.op("Cast", [from], { to: ELEMENT[type] })
  }

  /**
   * The model with the values of its larger constants in a file of their own, as exports of more than 2 GB: the model, and
   * that file's content.
   */
  encodeExternal(location: string, smallest = 1_024): { readonly model: Bytes; readonly data: Bytes } {
    const data: Array<Bytes> = []
    let at = 0
    const valuesOf: ValuesOf = (raw) => {
      if (raw.length < smallest) return bytes(9, raw)
      const entry = (key: string, value: string) => bytes(13, concat([text(1, key), text(2, value)]))
      const values = concat([
        entry("location", location),
        entry("offset", String(at)),
        entry("length", String(raw.length)),
        integer(14, 1),
      ])
      data.push(raw)
      at += raw.length
      return values
    }
    return { model: this.encodeModel(valuesOf), data: concat(data) }
  }

  encodeGraph(valuesOf: ValuesOf = (raw) => bytes(9, raw)): Bytes {
    return concat([
      ...this.nodes.map((node) => bytes(1, node)),
      text(2, "toy"),
      ...this.initializers.map(({ head, raw }) => bytes(5, concat([head, valuesOf(raw)]))),
      ...this.inputs.map((info) => bytes(11, info)),
      ...this.outputs.map((info) => bytes(12, info)),
    ])
  }

  /** A whole model file: IR version 8, opset 17, as the published exports. */
  encodeModel(valuesOf?: ValuesOf): Bytes {
    return concat([
      integer(1, 8),
      bytes(7, this.encodeGraph(valuesOf)),
      bytes(8, concat([text(1, ""), integer(2, 17)])),
    ])
  }
}
