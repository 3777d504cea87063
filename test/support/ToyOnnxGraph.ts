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

const tensorProto = (
  name: string,
  type: ElementType,
  dims: ReadonlyArray<number>,
  values: ArrayLike<number>,
): Bytes =>
  concat([
    ...dims.map((dim) => integer(1, dim)),
    integer(2, ELEMENT[type]),
    text(8, name),
    bytes(9, rawData(type, values)),
  ])

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

  encodeGraph(): Bytes {
    return concat([
      ...this.nodes.map((node) => bytes(1, node)),
      text(2, "toy"),
      ...this.initializers.map((tensor) => bytes(5, tensor)),
      ...this.inputs.map((info) => bytes(11, info)),
      ...this.outputs.map((info) => bytes(12, info)),
    ])
  }

  /** A whole model file: IR version 8, opset 17, as the published exports. */
  encodeModel(): Bytes {
    return concat([
      integer(1, 8),
      bytes(7, this.encodeGraph()),
      bytes(8, concat([text(1, ""), integer(2, 17)])),
    ])
  }
}
