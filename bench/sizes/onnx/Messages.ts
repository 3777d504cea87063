// The messages of onnx.proto3 as bytes, as far as writers of graphs need them: the generated weights and the toy graphs of the
// tests. Pure.

export type Bytes = Uint8Array

export const concat = (parts: ReadonlyArray<Bytes>): Bytes => Buffer.concat(parts)

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

export const integer = (field: number, value: number | bigint): Bytes =>
  concat([varint(field << 3), varint(value)])

/** Tag and length of a field whose `length` bytes follow. */
export const bytesHead = (field: number, length: number): Bytes =>
  concat([varint((field << 3) | 2), varint(length)])

export const bytes = (field: number, value: Bytes): Bytes => concat([bytesHead(field, value.length), value])

export const text = (field: number, value: string): Bytes => bytes(field, Buffer.from(value, "utf8"))

const float = (field: number, value: number): Bytes => {
  const four = Buffer.alloc(4)
  four.writeFloatLE(value)
  return concat([varint((field << 3) | 5), four])
}

/** Element types of onnx.proto3. */
export const elementTypes = {
  float32: 1,
  uint8: 2,
  int8: 3,
  int32: 6,
  int64: 7,
  bool: 9,
  float16: 10,
} as const
export type ElementType = keyof typeof elementTypes
/** Bytes of one element. */
export const elementBytes: Readonly<Record<ElementType, number>> = {
  float32: 4,
  uint8: 1,
  int8: 1,
  int32: 4,
  int64: 8,
  bool: 1,
  float16: 2,
}
/** A fixed size, or the name of a size that is known when the graph runs. */
export type Dim = number | string

export const valueInfo = (name: string, type: ElementType, dims: ReadonlyArray<Dim> | undefined): Bytes => {
  const shape = (dims ?? []).map((dim) => bytes(1, typeof dim === "number" ? integer(1, dim) : text(2, dim)))
  const tensorType = concat([
    integer(1, elementTypes[type]),
    ...(dims === undefined ? [] : [bytes(2, concat(shape))]),
  ])
  return concat([text(1, name), bytes(2, bytes(1, tensorType))])
}

/** Small numbers as the raw bytes of a tensor. */
export const rawData = (type: ElementType, values: ArrayLike<number>): Bytes => {
  const list = Array.from(values)
  switch (type) {
    case "float32":
      return new Uint8Array(Float32Array.from(list).buffer)
    case "int32":
      return new Uint8Array(Int32Array.from(list).buffer)
    case "int64":
      return new Uint8Array(BigInt64Array.from(list, BigInt).buffer)
    case "int8":
      return new Uint8Array(Int8Array.from(list).buffer)
    case "bool":
    case "uint8":
      return Uint8Array.from(list)
    case "float16":
      throw new Error("write a float32 constant and a Cast")
  }
}

export const tensorHead = (name: string, type: ElementType, dims: ReadonlyArray<number>): Bytes =>
  concat([...dims.map((dim) => integer(1, dim)), integer(2, elementTypes[type]), text(8, name)])

const tensorProto = (
  name: string,
  type: ElementType,
  dims: ReadonlyArray<number>,
  values: ArrayLike<number>,
): Bytes => concat([tensorHead(name, type, dims), bytes(9, rawData(type, values))])

/** Replaces a tensor's data by its position in a file beside the model. */
export const externalData = (location: string, offset: number, length: number): Bytes => {
  const entry = (key: string, value: string) => bytes(13, concat([text(1, key), text(2, value)]))
  return concat([
    entry("location", location),
    entry("offset", String(offset)),
    entry("length", String(length)),
    integer(14, 1),
  ])
}

/** A constant as a node's attribute. */
interface TensorAttribute {
  readonly type: ElementType
  readonly dims: ReadonlyArray<number>
  readonly values: ArrayLike<number>
}

export type Attribute =
  | number
  | string
  | ReadonlyArray<number>
  | { readonly float: number }
  | { readonly strings: ReadonlyArray<string> }
  | { readonly tensor: TensorAttribute }
  | { readonly encodeGraph: () => Bytes }

// AttributeProto types of onnx.proto3.
const attributeProto = (name: string, value: Attribute): Bytes => {
  if (typeof value === "number") return concat([text(1, name), integer(3, value), integer(20, 2)])
  if (typeof value === "string") return concat([text(1, name), text(4, value), integer(20, 3)])
  if ("encodeGraph" in value) return concat([text(1, name), bytes(6, value.encodeGraph()), integer(20, 5)])
  if ("float" in value) return concat([text(1, name), float(2, value.float), integer(20, 1)])
  if ("strings" in value) {
    return concat([text(1, name), ...value.strings.map((each) => text(9, each)), integer(20, 8)])
  }
  if ("tensor" in value) {
    const { dims, type, values } = value.tensor
    return concat([text(1, name), bytes(5, tensorProto("", type, dims, values)), integer(20, 4)])
  }
  return concat([text(1, name), ...value.map((item) => integer(8, item)), integer(20, 7)])
}

/** @param domain of the operator; empty for ONNX's own */
export const nodeProto = (
  name: string,
  type: string,
  inputs: ReadonlyArray<string>,
  outputs: ReadonlyArray<string>,
  attributes: Readonly<Record<string, Attribute>>,
  domain = "",
): Bytes =>
  concat([
    ...inputs.map((input) => text(1, input)),
    ...outputs.map((output) => text(2, output)),
    text(3, name),
    text(4, type),
    ...(domain === "" ? [] : [text(7, domain)]),
    ...Object.entries(attributes).map(([key, value]) => bytes(5, attributeProto(key, value))),
  ])

/** The fields of a model file besides its graph: IR version 8 and opset 17, as in published exports. */
export const modelHead: Bytes = integer(1, 8)
const opset = (domain: string, version: number): Bytes =>
  bytes(8, concat([text(1, domain), integer(2, version)]))
/** @param domains of the graph's operators besides ONNX's own */
export const modelTail = (domains: ReadonlySet<string>): Bytes =>
  concat([opset("", 17), ...[...domains].map((domain) => opset(domain, 1))])
