// Edits an ONNX graph without copying its weights: the result has other nodes, and references into the original file for
// weights stored in it. ONNX Runtime maps them from there, so a file of gigabytes is edited in milliseconds, and nothing
// is written to disk. The caller decides what to change.
import { basename } from "node:path"
import type { Extent, GraphNode, GraphOutline, GraphTensor, GraphValue } from "./GraphOutline.ts"
import { ELEMENT, GRAPH, MODEL, NODE, TENSOR, VALUE } from "./GraphOutline.ts"
import { fields, type Reader, writeBytes, writeInteger, writeText } from "./Protobuf.ts"

export interface NewNode {
  readonly type: string
  readonly inputs: ReadonlyArray<string>
  readonly outputs: ReadonlyArray<string>
}

export interface GraphEdit {
  /** New sources of node inputs: node → index of the input → name. */
  readonly inputs: ReadonlyMap<GraphNode, ReadonlyMap<number, string>>
  /** New nodes without attributes, inserted before a node. */
  readonly before: ReadonlyMap<GraphNode, ReadonlyArray<NewNode>>
  /** New int64 vectors by name. */
  readonly integers: Readonly<Record<string, ReadonlyArray<number>>>
  /** Axes of inputs and outputs whose length becomes symbolic: value → axis → name of the length. */
  readonly lengths: ReadonlyMap<string, ReadonlyMap<number, string>>
  /** Declared shapes of intermediate values: the name of each axis's length, "" for one to be inferred. */
  readonly values: ReadonlyMap<string, { readonly element: number; readonly dims: ReadonlyArray<string> }>
}

/** Bytes. Smaller tensors stay in the graph: ONNX Runtime reads shapes and scales from them during inference and folding. */
const SMALLEST_REFERENCE_BYTES = 4_096

/** More than any graph without its weights; the message must stay far below 2 GB. */
const MOST_BYTES = 64 * 1024 * 1024

const EXTERNAL = 1

const integerTensor = (name: string, values: ReadonlyArray<number>): Uint8Array => {
  const raw = Buffer.alloc(8 * values.length)
  for (const [i, value] of values.entries()) raw.writeBigInt64LE(BigInt(value), 8 * i)
  return Buffer.concat([
    writeInteger(TENSOR.dims, values.length),
    writeInteger(TENSOR.dataType, ELEMENT.int64),
    writeText(TENSOR.name, name),
    writeBytes(TENSOR.raw, raw),
  ])
}

const referenceTo = (file: string, { data, dims, name, type }: GraphTensor): Uint8Array => {
  const entry = (key: string, value: string | number) =>
    writeBytes(TENSOR.externalData, Buffer.concat([writeText(1, key), writeText(2, String(value))]))
  return Buffer.concat([
    ...dims.map((dim) => writeInteger(TENSOR.dims, dim)),
    writeInteger(TENSOR.dataType, type),
    writeText(TENSOR.name, name),
    entry("location", file),
    entry("offset", data!.at),
    entry("length", data!.size),
    writeInteger(TENSOR.dataLocation, EXTERNAL),
  ])
}

const nodeMessage = ({ inputs, outputs, type }: NewNode): Uint8Array =>
  Buffer.concat([
    ...inputs.map((name) => writeText(NODE.input, name)),
    ...outputs.map((name) => writeText(NODE.output, name)),
    writeText(NODE.opType, type),
  ])

const valueMessage = (
  value: Omit<GraphValue, "extent">,
  lengths: ReadonlyMap<number, string>,
): Uint8Array => {
  const shape = value.dims.map((dim, axis) => {
    const size = lengths.get(axis) ?? dim
    if (size === "") return writeBytes(VALUE.dim, new Uint8Array(0))
    return writeBytes(
      VALUE.dim,
      typeof size === "number" ? writeInteger(VALUE.dimValue, size) : writeText(VALUE.dimName, size),
    )
  })
  const tensor = Buffer.concat([
    writeInteger(VALUE.element, value.element),
    writeBytes(VALUE.shape, Buffer.concat(shape)),
  ])
  return Buffer.concat([
    writeText(VALUE.name, value.name),
    writeBytes(VALUE.type, writeBytes(VALUE.tensor, tensor)),
  ])
}

const copied = async (reader: Reader, { at, size }: Extent): Promise<Uint8Array> =>
  Uint8Array.from(await reader.bytes(at, size))

/** A copy of a node of the file with other inputs. */
const withInputs = async (reader: Reader, { extent }: GraphNode, names: ReadonlyMap<number, string>) => {
  const parts: Array<Uint8Array> = []
  let nth = 0
  for await (const field of fields(reader, extent.at, extent.at + extent.size)) {
    const name = field.number === NODE.input ? names.get(nth++) : undefined
    if (name !== undefined) parts.push(writeText(NODE.input, name))
    else parts.push(await copied(reader, { at: field.from, size: field.end - field.from }))
  }
  return Buffer.concat(parts)
}

/**
 * The edited model. Declared shapes of intermediate values (`value_info`) are omitted: ONNX Runtime infers them.
 * @throws RangeError if the graph without its weights is too large.
 */
export const edited = async (
  path: string,
  outline: GraphOutline,
  reader: Reader,
  edit: GraphEdit,
): Promise<Uint8Array> => {
  const file = basename(path)
  let sizeBytes = 0
  const sized = (part: Uint8Array): Uint8Array => {
    sizeBytes += part.length
    if (sizeBytes > MOST_BYTES) throw new RangeError("the graph is too large to edit")
    return part
  }
  const asIt = (extent: Extent) => {
    if (sizeBytes + extent.size > MOST_BYTES) throw new RangeError("the graph is too large to edit")
    return copied(reader, extent)
  }
  const graph: Array<Uint8Array> = []
  const add = (field: number, message: Uint8Array) => graph.push(sized(writeBytes(field, message)))
  for (const node of outline.nodes) {
    for (const one of edit.before.get(node) ?? []) add(GRAPH.node, nodeMessage(one))
    const names = edit.inputs.get(node)
    add(GRAPH.node, names === undefined ? await asIt(node.extent) : await withInputs(reader, node, names))
  }
  for (const tensor of outline.initializers) {
    const isReference = tensor.data !== undefined && tensor.data.size >= SMALLEST_REFERENCE_BYTES
    add(GRAPH.initializer, isReference ? referenceTo(file, tensor) : await asIt(tensor.extent))
  }
  for (const [name, values] of Object.entries(edit.integers)) {
    add(GRAPH.initializer, integerTensor(name, values))
  }
  for (const [field, values] of [
    [GRAPH.input, outline.inputs],
    [GRAPH.output, outline.outputs],
  ] as const) {
    for (const value of values) {
      const lengths = edit.lengths.get(value.name)
      add(field, lengths === undefined ? await asIt(value.extent) : valueMessage(value, lengths))
    }
  }
  for (const [name, value] of edit.values) add(GRAPH.valueInfo, valueMessage({ name, ...value }, new Map()))
  const rewritten: ReadonlyArray<number> = Object.values(GRAPH)
  for await (const field of fields(reader, outline.graph.at, outline.graph.at + outline.graph.size)) {
    if (rewritten.includes(field.number)) continue
    graph.push(sized(await asIt({ at: field.from, size: field.end - field.from })))
  }
  const model: Array<Uint8Array> = []
  for await (const field of fields(reader, 0, outline.sizeBytes)) {
    const isGraph = field.number === MODEL.graph
    model.push(
      isGraph
        ? writeBytes(MODEL.graph, Buffer.concat(graph))
        : sized(await asIt({ at: field.from, size: field.end - field.from })),
    )
  }
  return Buffer.concat(model)
}
