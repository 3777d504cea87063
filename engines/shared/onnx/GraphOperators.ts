// The operators that a graph file uses, read from the file because ONNX Runtime has no function for it. Adapters must
// know whether a graph draws random numbers. Reads the protobuf (ModelProto → GraphProto → NodeProto, subgraphs and model
// functions included) with positional reads and skips the weights, so a file of several hundred megabytes costs as
// little as a small one.
import { open } from "node:fs/promises"
import { basename } from "node:path"
import * as Effect from "effect/Effect"
import { type EngineError, loadFailed } from "../../protocol/Engine.ts"
import { fields, Reader } from "./Protobuf.ts"

/** Operators whose output changes from run to run, whatever their inputs. */
const randomOperators: ReadonlySet<string> = new Set([
  "RandomNormal",
  "RandomNormalLike",
  "RandomUniform",
  "RandomUniformLike",
  "Multinomial",
  "Bernoulli",
])

// Field numbers of onnx.proto.
const modelFields = { graph: 7, functions: 25 }
const graphFields = { node: 1 }
const functionFields = { node: 7 }
const nodeFields = { opType: 4, attribute: 5 }
const attribute = { graph: 6, graphs: 11 }

/** Depth of nested subgraphs; a file with more is damaged. */
const maxDepth = 32

type Counts = Map<string, number>

const countNodes = async (
  reader: Reader,
  start: number,
  end: number,
  nodeField: number,
  depth: number,
  counts: Counts,
): Promise<void> => {
  if (depth > maxDepth) throw new RangeError("subgraphs nest too deeply")
  for await (const field of fields(reader, start, end)) {
    if (field.number !== nodeField) continue
    for await (const part of fields(reader, field.at, field.at + field.size)) {
      if (part.number === nodeFields.opType) {
        const name = await reader.text(part)
        counts.set(name, (counts.get(name) ?? 0) + 1)
      } else if (part.number === nodeFields.attribute) {
        for await (const inner of fields(reader, part.at, part.at + part.size)) {
          if (inner.number !== attribute.graph && inner.number !== attribute.graphs) continue
          await countNodes(reader, inner.at, inner.at + inner.size, graphFields.node, depth + 1, counts)
        }
      }
    }
  }
}

const count = async (path: string): Promise<Counts> => {
  const file = await open(path, "r")
  try {
    const reader = new Reader(file)
    const counts: Counts = new Map()
    const { size } = await file.stat()
    for await (const field of fields(reader, 0, size)) {
      const end = field.at + field.size
      if (field.number === modelFields.graph)
        await countNodes(reader, field.at, end, graphFields.node, 0, counts)
      if (field.number === modelFields.functions)
        await countNodes(reader, field.at, end, functionFields.node, 0, counts)
    }
    return counts
  } finally {
    await file.close()
  }
}

/** Operator → number of nodes in the graph, its subgraphs and its functions. */
export const operatorCounts = (path: string): Effect.Effect<ReadonlyMap<string, number>, EngineError> =>
  Effect.tryPromise({
    try: () => count(path),
    catch: (cause) =>
      loadFailed(
        "",
        `${basename(path)}: ${(cause instanceof Error ? cause.message : String(cause)).replaceAll(path, basename(path))}`,
      ),
  })

/** Fails if the graph draws random numbers: its output would differ from run to run. */
export const requireRepeatable = (path: string): Effect.Effect<void, EngineError> =>
  Effect.flatMap(operatorCounts(path), (counts) => {
    const random = [...counts].filter(([operator]) => randomOperators.has(operator))
    if (random.length === 0) return Effect.void
    const list = random.map(([operator, times]) => `${operator} ×${times}`).join(", ")
    return Effect.fail(
      loadFailed("", `${basename(path)}: draws random numbers (${list}), its output would not repeat`),
    )
  })
