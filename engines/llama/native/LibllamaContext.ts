// One context of one model over llama.cpp's C interface.
//
// A batch is written into buffers that live as long as the context, so a step allocates nothing. Logits are read in
// place: the library stores all rows one after the other, in the order of the batch, until the next `decode`.
import type { Sampling } from "../../protocol/Engine.ts"
import type { Biases, LogitSampler } from "../sampling/LogitSampler.ts"
import type { Score } from "../sampling/Scores.ts"
import type { Interrupt } from "./Interrupt.ts"
import { addressOf, floatsAt, type Libllama, onThread, type Pointer } from "./Libllama.ts"
import {
  type BatchItem,
  Interrupted,
  type NativeContext,
  type RowAccess,
  type RowItem,
  type SavedState,
} from "./Native.ts"

/** Flags: save recurrent and sliding-window state only (the rest of the memory stays in place and is cut), or everything. */
const partialOnly = 1
const everything = 0

interface SavedBytes extends SavedState {
  readonly sequenceId: number
  bytes: Uint8Array | undefined
}

/** The arrays of a `llama_batch`. Each token has one sequence and one position, each row `coordinates` positions. */
export const batchBuffers = (capacity: number, coordinates = 1) => {
  const tokens = new Int32Array(new ArrayBuffer(4 * capacity))
  const positions = new Int32Array(new ArrayBuffer(4 * capacity * coordinates))
  const sequences = new Int32Array(new ArrayBuffer(4 * capacity))
  const wanted = new Int8Array(new ArrayBuffer(capacity))
  const counts = new Int32Array(new ArrayBuffer(4 * capacity)).fill(1)
  const firstSequence = addressOf(sequences.buffer)
  const pointers = new BigUint64Array(new ArrayBuffer(8 * capacity))
  for (let at = 0; at < capacity; at++) pointers[at] = firstSequence + BigInt(4 * at)
  const addresses = {
    token: addressOf(tokens.buffer),
    embd: null,
    pos: addressOf(positions.buffer),
    n_seq_id: addressOf(counts.buffer),
    seq_id: addressOf(pointers.buffer),
    logits: addressOf(wanted.buffer),
  }
  // The typed arrays are returned to keep them alive, because the native side holds their addresses.
  return { tokens, positions, sequences, wanted, counts, pointers, addresses }
}

interface LibllamaContextOptions {
  readonly library: Libllama
  readonly context: Pointer
  readonly vocabularySize: number
  readonly slots: number
  readonly batchTokens: number
  /** Values and positions of a row of embeddings. */
  readonly rows: Pick<RowAccess, "coordinates" | "width">
  /** True if a GPU computes: then `decode` returns before its logits are ready. */
  readonly offloaded: boolean
  readonly interrupt: Interrupt
  readonly sampler: (sampling: Sampling, biases: Biases | undefined) => LogitSampler
  readonly score: (row: Float32Array, token: number, top: number) => Score
  readonly masses: (row: Float32Array, groups: ReadonlyArray<ReadonlyArray<number>>) => ReadonlyArray<number>
}

/** Return value of `llama_decode` for an evaluation that was ended early. */
const interrupted = 2

/** @throws unless `returned`, which `llama_decode` has returned, means success. */
export const evaluationEnds = (returned: number): void => {
  if (returned === 1) throw new Error("the context has no free cells for this batch")
  if (returned === interrupted) throw new Interrupted()
  if (returned !== 0) throw new Error(`llama_decode failed with ${returned}`)
}

export const libllamaContext = (options: LibllamaContextOptions): NativeContext => {
  const { library, context, vocabularySize, slots, batchTokens } = options
  const memory = library.memory(context)
  if (memory === null) throw new Error("this model generates no text")
  const buffers = batchBuffers(batchTokens, options.rows.coordinates)
  const { tokens, positions, sequences, wanted } = buffers
  /** View of the rows of the last decode; kept while their address stays the same, and there are no more of them. */
  let rows: Float32Array | undefined
  let rowsAddress: Pointer | undefined

  const write = (items: ReadonlyArray<BatchItem>): ReadonlyArray<number> => {
    let at = 0
    let outputs = 0
    const rowOf = items.map((item) => {
      for (const [offset, token] of item.tokens.entries()) {
        tokens[at] = token
        positions[at] = item.position + offset
        sequences[at] = item.sequenceId
        wanted[at++] = 0
      }
      for (const index of item.rowsAt ?? []) wanted[at - item.tokens.length + index] = 1
      outputs += item.rowsAt?.length ?? 0
      if (!item.logits) return -1
      wanted[at - 1] = 1
      return outputs++
    })
    return rowOf
  }

  const readLogits = (count: number): void => {
    const address = library.logits(context)
    if (address === null) throw new Error("this model returns no logits")
    // The library's buffer has a row for every sequence, also for smaller batches, and more after a batch that asked for more.
    const values = Math.max(slots, count) * vocabularySize
    if (address === rowsAddress && rows !== undefined && rows.length >= values) return
    rowsAddress = address
    rows = floatsAt(address, values)
  }

  const saved = async (sequenceId: number, flags: number): Promise<SavedBytes> => {
    const sizeBytes = library.stateSize(context, sequenceId, flags)
    const bytes = new Uint8Array(sizeBytes)
    const written = await onThread(library.saveState, context, bytes, sizeBytes, sequenceId, flags)
    if (sizeBytes === 0 || written !== sizeBytes) throw new Error("a sequence's state could not be saved")
    const state: SavedBytes = {
      sequenceId,
      bytes,
      sizeBytes,
      dispose: () => {
        state.bytes = undefined
      },
    }
    return state
  }

  const logitsOf = (row: number): Float32Array => {
    if (rows === undefined) throw new Error("nothing was decoded")
    return rows.subarray(row * vocabularySize, (row + 1) * vocabularySize)
  }

  const { coordinates, width } = options.rows
  const evaluateRows = async (item: RowItem): Promise<void> => {
    const size = item.rows.length / width
    if (!Number.isInteger(size) || size === 0 || size > batchTokens)
      throw new RangeError(`${item.rows.length} values in a batch of ${batchTokens} rows of ${width}`)
    if (item.positions.length !== size * coordinates)
      throw new RangeError(`${item.positions.length} positions for ${size} rows`)
    positions.set(item.positions)
    sequences.fill(item.sequenceId, 0, size)
    wanted.fill(0, 0, size)
    const embd = addressOf(item.rows.buffer) + BigInt(item.rows.byteOffset)
    options.interrupt.set(false)
    const batch = { n_tokens: size, ...buffers.addresses, token: null, embd }
    evaluationEnds(await onThread(library.decode, context, batch))
    if (options.offloaded) await onThread(library.synchronize, context)
    // The last use of `item` comes after the library has read its memory, which the address alone would not keep.
    if (item.rows.length === 0) throw new Error("no rows")
  }

  return {
    rows: { coordinates, width, evaluate: evaluateRows },
    decode: async (items) => {
      let size = 0
      for (const item of items) size += item.tokens.length
      if (size === 0 || size > batchTokens)
        throw new RangeError(`${size} tokens in a batch of ${batchTokens}`)
      const rowOf = write(items)
      options.interrupt.set(false)
      evaluationEnds(await onThread(library.decode, context, { n_tokens: size, ...buffers.addresses }))
      if (options.offloaded) await onThread(library.synchronize, context)
      const rowCount = items.reduce(
        (sum, { logits, rowsAt = [] }) => sum + (logits ? 1 : 0) + rowsAt.length,
        0,
      )
      if (rowCount > 0) readLogits(rowCount)
      return rowOf
    },
    sampler: (sampling, biases) => {
      const sampler = options.sampler(sampling, biases)
      return {
        sample: async (row) => sampler.draw(logitsOf(row)),
        choose: (row, choice) => sampler.choose(logitsOf(row), choice),
        count: (token) => sampler.count(token),
        dispose: () => {},
      }
    },
    direct: {
      score: (row, token, top) => options.score(typeof row === "number" ? logitsOf(row) : row, token, top),
      masses: (row, groups) => options.masses(logitsOf(row), groups),
      // Sequences have streams of their own, between which the library copies whole sequences only.
      copy: (from, to) => library.copySequence(memory, from, to, -1, -1),
      wholeBytes: (sequenceId) => library.stateSize(context, sequenceId, everything),
      saveWhole: (sequenceId) => saved(sequenceId, everything),
      give: async (state, sequenceId) => {
        const { bytes } = state as SavedBytes
        if (bytes === undefined) return false
        const read = await onThread(
          library.restoreState,
          context,
          bytes,
          bytes.length,
          sequenceId,
          everything,
        )
        if (read === bytes.length) return true
        library.remove(memory, sequenceId, -1, -1)
        return false
      },
    },
    cut: (sequenceId, length, heldLength) => library.remove(memory, sequenceId, length, heldLength),
    clear: (sequenceId) => {
      if (!library.remove(memory, sequenceId, -1, -1)) throw new Error("a sequence could not be cleared")
    },
    save: (sequenceId) => saved(sequenceId, partialOnly),
    restore: async (state, length) => {
      const { bytes, sequenceId } = state as SavedBytes
      if (bytes === undefined) return false
      const read = await onThread(library.restoreState, context, bytes, bytes.length, sequenceId, partialOnly)
      return (
        read === bytes.length &&
        library.remove(memory, sequenceId, length, -1) &&
        library.lastPosition(memory, sequenceId) === length - 1
      )
    },
    interrupt: () => options.interrupt.set(true),
    setThreads: (threads) => library.setThreads(context, threads, threads),
  }
}
