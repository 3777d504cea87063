// Writes a graph as a model file, weight by weight. A protobuf message is limited to 2 GB, so the weights of a larger model
// go into a second file beside it, as in published exports.
import { open } from "node:fs/promises"
import { basename } from "node:path"
import type { Graph, Initializer } from "./Graph.ts"
import {
  type Bytes,
  bytesHead,
  concat,
  elementBytes,
  externalData,
  modelHead,
  modelTail,
  tensorHead,
} from "./Messages.ts"

/** Limit of a protobuf message: 2^31 − 1 bytes. */
const largestMessage = 1.9e9
/** Smaller weights stay in the graph, so that it can be optimised without the second file. */
const smallestExternal = 1_000_000
/** Alignment of the weights in the second file, so that it can be mapped into memory. */
const pageBytes = 4096

const sizeOf = ({ dims, type }: Initializer): number =>
  dims.reduce((product, dim) => product * dim, elementBytes[type])

interface Placed {
  readonly initializer: Initializer
  /** The tensor's message up to its data. */
  readonly head: Bytes
  /** Position of its data in the second file; undefined where the data follows the head. */
  readonly offset: number | undefined
}

const place = (all: ReadonlyArray<Initializer>, dataFile: string): ReadonlyArray<Placed> => {
  const external = all.reduce((sum, each) => sum + sizeOf(each), 0) > largestMessage
  let end = 0
  return all.map((initializer) => {
    const head = tensorHead(initializer.name, initializer.type, initializer.dims)
    const size = sizeOf(initializer)
    if (!external || size < smallestExternal) {
      return { initializer, head: concat([head, bytesHead(9, size)]), offset: undefined }
    }
    const offset = Math.ceil(end / pageBytes) * pageBytes
    end = offset + size
    return { initializer, head: concat([head, externalData(dataFile, offset, size)]), offset }
  })
}

const dataOf = (initializer: Initializer): Bytes => {
  const data = initializer.data()
  if (data.length !== sizeOf(initializer)) {
    throw new Error(`${initializer.name}: ${data.length} bytes in place of ${sizeOf(initializer)}`)
  }
  return data
}

export const writeModel = async (path: string, graph: Graph): Promise<void> => {
  const dataFile = `${basename(path)}_data`
  const placed = place([...graph.initializers.values()], dataFile)
  const lengthOf = ({ head, initializer, offset }: Placed) =>
    head.length + (offset === undefined ? sizeOf(initializer) : 0)
  const { body } = graph
  const length = placed.reduce((sum, each) => {
    const size = lengthOf(each)
    return sum + bytesHead(5, size).length + size
  }, body.length)
  const file = await open(path, "w")
  const data = placed.some(({ offset }) => offset !== undefined) ? await open(`${path}_data`, "w") : undefined
  try {
    const write = (chunk: Bytes) => file.writeFile(chunk)
    await write(concat([modelHead, bytesHead(7, length), body]))
    for (const each of placed) {
      await write(concat([bytesHead(5, lengthOf(each)), each.head]))
      const content = dataOf(each.initializer)
      if (each.offset === undefined) await write(content)
      else await data?.write(content, 0, content.length, each.offset)
    }
    await write(modelTail(graph.domains))
  } finally {
    await file.close()
    await data?.close()
  }
}
