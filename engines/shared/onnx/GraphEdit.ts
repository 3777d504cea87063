// Edits an ONNX graph without copying its weights: the result has other nodes, and references into the original file for
// weights stored in it. ONNX Runtime maps them from there, so a file of gigabytes is edited in milliseconds, and nothing
// is written to disk. The caller decides what to change.
import { basename } from "node:path"
import type { Extent, GraphNode, GraphOutline, GraphTensor, GraphValue } from "./GraphOutline.ts"
import {
  elementTypes,
  graphFields,
  modelFields,
  nodeFields,
  tensorFields,
  valueFields,
} from "./GraphOutline.ts"
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
const smallestReferenceBytes = 4_096

/** More than any graph without its weights; the message must stay far below 2 GB. */
const mostBytes = 64 * 1024 * 1024

const external = 1

const integerTensor = (name: string, values: ReadonlyArray<number>): Uint8Array => {
  const raw = Buffer.alloc(8 * values.length)
  for (const [i, value] of values.entries()) raw.writeBigInt64LE(BigInt(value), 8 * i)
  return Buffer.concat([
    writeInteger(tensorFields.dims, values.length),
    writeInteger(tensorFields.dataType, elementTypes.int64),
    writeText(tensorFields.name, name),
    writeBytes(tensorFields.raw, raw),
  ])
}

const referenceTo = (file: string, { data, dims, name, type }: GraphTensor): Uint8Array => {
  const entry = (key: string, value: string | number) =>
    writeBytes(tensorFields.externalData, Buffer.concat([writeText(1, key), writeText(2, String(value))]))
  return Buffer.concat([
    ...dims.map((dim) => writeInteger(tensorFields.dims, dim)),
    writeInteger(tensorFields.dataType, type),
    writeText(tensorFields.name, name),
    entry("location", file),
    entry("offset", data!.at),
    entry("length", data!.size),
    writeInteger(tensorFields.dataLocation, external),
  ])
}

const nodeMessage = ({ inputs, outputs, type }: NewNode): Uint8Array =>
  Buffer.concat([
    ...inputs.map((name) => writeText(nodeFields.input, name)),
    ...outputs.map((name) => writeText(nodeFields.output, name)),
    writeText(nodeFields.opType, type),
  ])

const valueMessage = (
  value: Omit<GraphValue, "extent">,
  lengths: ReadonlyMap<number, string>,
): Uint8Array => {
  const shape = value.dims.map((dim, axis) => {
    const size = lengths.get(axis) ?? dim
    if (size === "") return writeBytes(valueFields.dim, new Uint8Array(0))
    return writeBytes(
      valueFields.dim,
      typeof size === "number"
        ? writeInteger(valueFields.dimValue, size)
        : writeText(valueFields.dimName, size),
    )
  })
  const tensor = Buffer.concat([
    writeInteger(valueFields.element, value.element),
    writeBytes(valueFields.shape, Buffer.concat(shape)),
  ])
  return Buffer.concat([
    writeText(valueFields.name, value.name),
    writeBytes(valueFields.type, writeBytes(valueFields.tensor, tensor)),
  ])
}

const copied = async (reader: Reader, { at, size }: Extent): Promise<Uint8Array> =>
  Uint8Array.from(await reader.bytes(at, size))

/** A copy of a node of the file with other inputs. */
const withInputs = async (reader: Reader, { extent }: GraphNode, names: ReadonlyMap<number, string>) => {
  const parts: Array<Uint8Array> = []
  let nth = 0
  for await (const field of fields(reader, extent.at, extent.at + extent.size)) {
    const name = field.number === nodeFields.input ? names.get(nth++) : undefined
    if (name !== undefined) parts.push(writeText(nodeFields.input, name))
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
    if (sizeBytes > mostBytes) throw new RangeError("the graph is too large to edit")
    return part
  }
  const asIt = (extent: Extent) => {
    if (sizeBytes + extent.size > mostBytes) throw new RangeError("the graph is too large to edit")
    return copied(reader, extent)
  }
  const graph: Array<Uint8Array> = []
  const add = (field: number, message: Uint8Array) => graph.push(sized(writeBytes(field, message)))
  for (const node of outline.nodes) {
    for (const one of edit.before.get(node) ?? []) add(graphFields.node, nodeMessage(one))
    const names = edit.inputs.get(node)
    add(
      graphFields.node,
      names === undefined ? await asIt(node.extent) : await withInputs(reader, node, names),
    )
  }
  for (const tensor of outline.initializers) {
    const isReference = tensor.data !== undefined && tensor.data.size >= smallestReferenceBytes
    add(graphFields.initializer, isReference ? referenceTo(file, tensor) : await asIt(tensor.extent))
  }
  for (const [name, values] of Object.entries(edit.integers)) {
    add(graphFields.initializer, integerTensor(name, values))
  }
  for (const [field, values] of [
    [graphFields.input, outline.inputs],
    [graphFields.output, outline.outputs],
  ] as const) {
    for (const value of values) {
      const lengths = edit.lengths.get(value.name)
      add(field, lengths === undefined ? await asIt(value.extent) : valueMessage(value, lengths))
    }
  }
  for (const [name, value] of edit.values)
    add(graphFields.valueInfo, valueMessage({ name, ...value }, new Map()))
  const rewritten: ReadonlyArray<number> = Object.values(graphFields)
  for await (const field of fields(reader, outline.graph.at, outline.graph.at + outline.graph.size)) {
    if (rewritten.includes(field.number)) continue
    graph.push(sized(await asIt({ at: field.from, size: field.end - field.from })))
  }
  const model: Array<Uint8Array> = []
  for await (const field of fields(reader, 0, outline.sizeBytes)) {
    const isGraph = field.number === modelFields.graph
    model.push(
      isGraph
        ? writeBytes(modelFields.graph, Buffer.concat(graph))
        : sized(await asIt({ at: field.from, size: field.end - field.from })),
    )
  }
  return Buffer.concat(model)
}
