// A tower: the neural network that turns a picture into rows of embeddings for the text model. Its weights are read from an
// mmproj GGUF file into the memory of the device that has the text model; one picture at a time is computed, on a thread.
import { open } from "node:fs/promises"
import type { Interrupt } from "../native/Interrupt.ts"
import { onThread, type Pointer } from "../native/Libllama.ts"
import type { TowerDevice } from "../native/Native.ts"
import { type Ggml, openGgml, openTensors } from "./Ggml.ts"
import { Graph, type Tensor, UnfitTensors } from "./Graph.ts"
import { familyGraphs } from "./Graphs.ts"
import { cellPositions } from "./QwenGraph.ts"
import { type TowerFile, UnusableTower } from "./TowerFile.ts"

/** A picture as the tower reads it: all values of red, then green, then blue, line by line, normalised. */
export interface Planes {
  readonly width: number
  readonly height: number
  readonly values: Float32Array
}

/** The computation was ended by `interrupt`. */
export class TowerInterrupted extends Error {}

export interface Tower {
  readonly file: TowerFile
  /** Values of a row. */
  readonly rowWidth: number
  /** The rows of a picture. Calls must not overlap. `threads`: CPU threads, if the tower is on the CPU. */
  readonly encode: (planes: Planes, threads: number) => Promise<Float32Array<ArrayBuffer>>
  /** Makes a running `encode` fail within one operation, on the CPU. */
  readonly interrupt: () => void
  readonly close: () => void
}

/** Bytes that are read from the file at once. */
const pieceBytes = 8 * 1024 * 1024

const readWeights = async (
  ggml: Ggml,
  path: string,
  file: Pointer,
  tensors: ReadonlyMap<string, Tensor>,
): Promise<void> => {
  const source = await open(path, "r")
  try {
    const begin = Number(ggml.dataOffset(file))
    const piece = new Uint8Array(pieceBytes)
    for (const [name, { at }] of tensors) {
      const bytes = Number(ggml.bytesOf(at))
      const offset = begin + Number(ggml.tensorOffset(file, ggml.findTensor(file, name)))
      for (let done = 0; done < bytes; ) {
        const { bytesRead } = await source.read(piece, 0, Math.min(pieceBytes, bytes - done), offset + done)
        if (bytesRead === 0) throw new UnusableTower("is cut short")
        ggml.setTensor(at, piece, done, bytesRead)
        done += bytesRead
      }
    }
  } finally {
    await source.close()
  }
}

interface Encoding {
  readonly graph: Graph
  readonly picture: Tensor
  readonly positions: Tensor | undefined
  readonly rows: Tensor
}

const encodingOf = (
  ggml: Ggml,
  file: TowerFile,
  tensors: ReadonlyMap<string, Tensor>,
  width: number,
  height: number,
): Encoding => {
  const graph = new Graph(ggml)
  try {
    const tensor = (name: string): Tensor => {
      const found = tensors.get(name)
      if (found === undefined) throw new UnfitTensors(`there is no tensor ${name}`)
      return found
    }
    const building = { graph, file, tensor, find: (name: string) => tensors.get(name) }
    const picture = graph.input([width, height, 3, 1])
    let positions: Tensor | undefined
    const rows = familyGraphs[file.projector].rows(building, picture, () => {
      positions = graph.input([(4 * width * height) / file.patch ** 2, 1, 1, 1], "i32")
      return positions
    })
    return { graph, picture, positions, rows: graph.output(rows) }
  } catch (cause) {
    graph.free()
    throw cause
  }
}

/** True if the device can do every operation of the graph. */
const canCompute = (ggml: Ggml, backend: Pointer, { graph }: Encoding): boolean => {
  const count = ggml.nodeCount(graph.graph)
  for (let at = 0; at < count; at++) if (!ggml.supports(backend, ggml.node(graph.graph, at))) return false
  return true
}

const encoder =
  (ggml: Ggml, backend: Pointer, file: TowerFile, tensors: ReadonlyMap<string, Tensor>) =>
  async ({ height, values, width }: Planes, isInterrupted: () => boolean) => {
    const encoding = encodingOf(ggml, file, tensors, width, height)
    const allocator = ggml.newAllocator(ggml.bufferType(backend))
    try {
      if (!ggml.allocateGraph(allocator, encoding.graph.graph))
        throw new Error("there is no memory for the tower's computation")
      ggml.setTensor(encoding.picture.at, values, 0, values.byteLength)
      if (encoding.positions !== undefined) {
        const positions = cellPositions(width / file.patch, height / file.patch)
        ggml.setTensor(encoding.positions.at, positions, 0, positions.byteLength)
      }
      const status = await onThread(ggml.compute, backend, encoding.graph.graph)
      if (isInterrupted()) throw new TowerInterrupted("the tower was interrupted")
      if (status !== 0) throw new Error(`the tower's computation failed with ${status}`)
      const [rowWidth, count] = encoding.rows.shape
      const rows = new Float32Array(rowWidth * count)
      ggml.getTensorData(encoding.rows.at, rows, 0, rows.byteLength)
      return rows
    } finally {
      // Giving back some hundred megabytes takes 10 to 20 ms (measured).
      await onThread(ggml.freeAllocator, allocator)
      encoding.graph.free()
    }
  }

const allTensors = (ggml: Ggml, context: Pointer, { shapes }: TowerFile): ReadonlyMap<string, Tensor> =>
  new Map(
    [...shapes].map(([name, shape]) => [name, { at: ggml.getTensor(context, name), shape } satisfies Tensor]),
  )

/** The device that computes the tower: the GPU if the text model is there and it knows all operations. */
const openBackend = (
  ggml: Ggml,
  device: TowerDevice,
  probe: (backend: Pointer) => boolean,
): { readonly backend: Pointer; readonly onGpu: boolean } => {
  const gpu = device.offloaded ? ggml.openGpu() : null
  if (gpu !== null) {
    if (probe(gpu)) return { backend: gpu, onGpu: true }
    ggml.freeBackend(gpu)
  }
  const backend = ggml.openProcessor()
  if (backend === null) throw new Error("the CPU cannot be used")
  return { backend, onGpu: false }
}

/** @throws UnusableTower */
export const openTower = async (path: string, file: TowerFile, device: TowerDevice): Promise<Tower> => {
  const ggml = openGgml(device.objects)
  const opened = openTensors(ggml, path)
  if (opened === undefined) throw new UnusableTower("is damaged")
  const { context, file: handle } = opened
  let backend: Pointer | undefined
  let buffer: Pointer | null = null
  const close = () => {
    if (buffer !== null) ggml.freeBuffer(buffer)
    if (backend !== undefined) ggml.freeBackend(backend)
    ggml.free(context)
  }
  try {
    const tensors = allTensors(ggml, context, file)
    // Tensors that do not fit together are found here, before a picture comes.
    const trial = encodingOf(ggml, file, tensors, file.size, file.size)
    const { backend: chosen, onGpu } = openBackend(ggml, device, (gpu) => canCompute(ggml, gpu, trial))
    trial.graph.free()
    backend = chosen
    const rowWidth = trial.rows.shape[0]
    buffer = ggml.allocate(context, chosen)
    if (buffer === null) throw new Error("there is no memory for the tower's weights")
    await readWeights(ggml, path, handle, tensors)
    const stop: Interrupt = device.makeInterrupt()
    if (!onGpu) ggml.setAbort(chosen, stop.callback, stop.data)
    const encode = encoder(ggml, chosen, file, tensors)
    let interrupted = false
    return {
      file,
      rowWidth,
      encode: (planes, threads) => {
        interrupted = false
        stop.set(false)
        if (!onGpu) ggml.setThreads(chosen, threads)
        return encode(planes, () => interrupted)
      },
      interrupt: () => {
        interrupted = true
        stop.set(true)
      },
      close,
    }
  } catch (cause) {
    close()
    throw cause instanceof UnfitTensors
      ? new UnusableTower(`is no tower of type ${file.projector}: ${cause.message}`)
      : cause
  } finally {
    ggml.closeFile(handle)
  }
}
