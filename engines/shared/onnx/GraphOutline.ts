// The nodes, initializers, inputs and outputs of an ONNX graph file. Instead of weights it has their positions in the
// file. For edits of a graph at its load (GraphEdit). Subgraphs and functions are not read.
import { type FileHandle, open } from "node:fs/promises"
import { type Field, fields, Reader } from "./Protobuf.ts"

// Field numbers of onnx.proto.
export const modelFields = { graph: 7 } as const
export const graphFields = { node: 1, initializer: 5, input: 11, output: 12, valueInfo: 13 } as const
export const nodeFields = { input: 1, output: 2, opType: 4, attribute: 5 } as const
const attribute = { tensor: 5 } as const
export const tensorFields = {
  dims: 1,
  dataType: 2,
  floats: 4,
  integers: 7,
  name: 8,
  raw: 9,
  externalData: 13,
  dataLocation: 14,
} as const
/** `ValueInfoProto`, its `TypeProto`, the tensor type in it, its shape, and a dimension of the shape. */
export const valueFields = {
  name: 1,
  type: 2,
  tensor: 1,
  element: 1,
  shape: 2,
  dim: 1,
  dimValue: 1,
  dimName: 2,
} as const

/** Element types of tensors. */
export const elementTypes = { float32: 1, int64: 7, float16: 10 } as const

/** A range of bytes of the file. */
export interface Extent {
  readonly at: number
  readonly size: number
}

export interface GraphTensor {
  readonly name: string
  readonly dims: ReadonlyArray<number>
  readonly type: number
  /** The whole message. */
  readonly extent: Extent
  /** Its values in the file, little-endian; undefined if they are stored elsewhere or in another form. */
  readonly data: Extent | undefined
  /** Values of an int64 tensor of at most 8 elements. */
  readonly integers: ReadonlyArray<number> | undefined
}

export interface GraphNode {
  readonly extent: Extent
  readonly type: string
  readonly inputs: ReadonlyArray<string>
  readonly outputs: ReadonlyArray<string>
  /** The value of a `Constant` node. */
  readonly value: GraphTensor | undefined
}

export interface GraphValue {
  readonly extent: Extent
  readonly name: string
  readonly element: number
  readonly dims: ReadonlyArray<number | string>
}

export interface GraphOutline {
  readonly sizeBytes: number
  /** The message of the graph. */
  readonly graph: Extent
  readonly nodes: ReadonlyArray<GraphNode>
  readonly initializers: ReadonlyArray<GraphTensor>
  readonly inputs: ReadonlyArray<GraphValue>
  readonly outputs: ReadonlyArray<GraphValue>
}

const within = (reader: Reader, { at, size }: Extent) => fields(reader, at, at + size)

const mostIntegers = 8

/** Reads a 64-bit varint as signed: a negative number is encoded close to 2^64. */
const signed = (value: number): number => (value >= 2 ** 63 ? value - 2 ** 64 : value)

const packedIntegers = async (reader: Reader, field: Field): Promise<ReadonlyArray<number>> => {
  if (field.size === 0) return [signed(field.value)]
  const values: Array<number> = []
  for (let at = field.at; at < field.at + field.size; ) {
    const [value, size] = await reader.varint(at)
    values.push(signed(value))
    at += size
  }
  return values
}

const rawIntegers = async (reader: Reader, { at, size }: Field): Promise<ReadonlyArray<number>> => {
  const bytes = await reader.bytes(at, size)
  return Array.from({ length: size / 8 }, (_, i) => Number(bytes.readBigInt64LE(i * 8)))
}

const readTensor = async (reader: Reader, extent: Extent): Promise<GraphTensor> => {
  const dims: Array<number> = []
  let integers: Array<number> | undefined
  let name = ""
  let type = 0
  let raw: Field | undefined
  let floats: Field | undefined
  for await (const field of within(reader, extent)) {
    if (field.number === tensorFields.dims) dims.push(...(await packedIntegers(reader, field)))
    else if (field.number === tensorFields.dataType) type = field.value
    else if (field.number === tensorFields.name) name = await reader.text(field)
    else if (field.number === tensorFields.raw) raw = field
    else if (field.number === tensorFields.floats && field.size > 0) floats = field
    else if (field.number === tensorFields.integers && field.size <= 10 * mostIntegers) {
      integers = [...(integers ?? []), ...(await packedIntegers(reader, field))]
    }
  }
  if (type === elementTypes.int64 && raw !== undefined && raw.size <= 8 * mostIntegers) {
    integers = [...(await rawIntegers(reader, raw))]
  }
  // Packed floats are little-endian, like raw data.
  const data = raw ?? (type === elementTypes.float32 ? floats : undefined)
  return { name, dims, type, extent, data, integers: type === elementTypes.int64 ? integers : undefined }
}

const readNode = async (reader: Reader, extent: Extent): Promise<GraphNode> => {
  const inputs: Array<string> = []
  const outputs: Array<string> = []
  let type = ""
  let value: GraphTensor | undefined
  for await (const field of within(reader, extent)) {
    if (field.number === nodeFields.input) inputs.push(await reader.text(field))
    else if (field.number === nodeFields.output) outputs.push(await reader.text(field))
    else if (field.number === nodeFields.opType) type = await reader.text(field)
    else if (field.number === nodeFields.attribute && type === "Constant") {
      for await (const part of within(reader, field)) {
        if (part.number === attribute.tensor) value = await readTensor(reader, part)
      }
    }
  }
  return { extent, type, inputs, outputs, value }
}

const readDims = async (reader: Reader, shape: Extent): Promise<ReadonlyArray<number | string>> => {
  const dims: Array<number | string> = []
  for await (const dim of within(reader, shape)) {
    if (dim.number !== valueFields.dim) continue
    let size: number | string = ""
    for await (const part of within(reader, dim)) {
      size = part.number === valueFields.dimName ? await reader.text(part) : part.value
    }
    dims.push(size)
  }
  return dims
}

const readValue = async (reader: Reader, extent: Extent): Promise<GraphValue> => {
  let name = ""
  let element = 0
  let dims: ReadonlyArray<number | string> = []
  for await (const field of within(reader, extent)) {
    if (field.number === valueFields.name) name = await reader.text(field)
    if (field.number !== valueFields.type) continue
    for await (const type of within(reader, field)) {
      if (type.number !== valueFields.tensor) continue
      for await (const part of within(reader, type)) {
        if (part.number === valueFields.element) element = part.value
        else if (part.number === valueFields.shape) dims = await readDims(reader, part)
      }
    }
  }
  return { extent, name, element, dims }
}

/** @throws RangeError if the file is not a complete model. */
const readOutline = async (reader: Reader, sizeBytes: number): Promise<GraphOutline> => {
  let graph: Field | undefined
  for await (const field of fields(reader, 0, sizeBytes))
    if (field.number === modelFields.graph) graph = field
  if (graph === undefined) throw new RangeError("no graph")
  const nodes: Array<GraphNode> = []
  const initializers: Array<GraphTensor> = []
  const inputs: Array<GraphValue> = []
  const outputs: Array<GraphValue> = []
  for await (const field of within(reader, graph)) {
    if (field.number === graphFields.node) nodes.push(await readNode(reader, field))
    else if (field.number === graphFields.initializer) initializers.push(await readTensor(reader, field))
    else if (field.number === graphFields.input) inputs.push(await readValue(reader, field))
    else if (field.number === graphFields.output) outputs.push(await readValue(reader, field))
  }
  return { sizeBytes, graph: { at: graph.at, size: graph.size }, nodes, initializers, inputs, outputs }
}

/** Opens the file for the duration of `use`. */
export const withOutline = async <A>(
  path: string,
  use: (outline: GraphOutline, reader: Reader) => Promise<A>,
): Promise<A> => {
  const file: FileHandle = await open(path, "r")
  try {
    const reader = new Reader(file)
    return await use(await readOutline(reader, (await file.stat()).size), reader)
  } finally {
    await file.close()
  }
}
