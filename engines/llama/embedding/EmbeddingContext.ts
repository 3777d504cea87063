// A context that evaluates whole inputs, each as a sequence of its own, and gives one pooled vector for each.

import type { Interrupt } from "../native/Interrupt.ts"
import { floatsAt, type Libllama, onThread, type Pointer } from "../native/Libllama.ts"
import { batchBuffers, evaluationEnds } from "../native/LibllamaContext.ts"
import type { BatchItem, NativeContext } from "../native/Native.ts"

/** Calls must not overlap. */
export interface EmbeddingContext
  extends Pick<NativeContext, "clear" | "decode" | "interrupt" | "setThreads"> {
  /** A copy of the vector of a sequence of the last `decode`. */
  readonly vector: (sequenceId: number) => Float32Array
}

interface EmbeddingContextOptions {
  readonly library: Libllama
  readonly context: Pointer
  /** Values of a vector. */
  readonly dimensions: number
  /** Most tokens of one evaluation. */
  readonly capacity: number
  readonly interrupt: Interrupt
}

export const embeddingContext = (options: EmbeddingContextOptions): EmbeddingContext => {
  const { capacity, context, dimensions, interrupt, library } = options
  /** Models without causal attention keep nothing between two evaluations. */
  const memory = library.memory(context)
  // `decode` reads `buffers` itself: that keeps all arrays alive whose addresses the native side holds.
  const buffers = batchBuffers(capacity)
  const { positions, sequences, tokens, wanted } = buffers
  const clear = (sequenceId: number): void => {
    if (memory === null || memory === 0n) return
    if (!library.remove(memory, sequenceId, -1, -1)) throw new Error("a sequence could not be cleared")
  }
  const write = (items: ReadonlyArray<BatchItem>): number => {
    let at = 0
    for (const item of items)
      for (const [position, token] of item.tokens.entries()) {
        tokens[at] = token
        positions[at] = position
        sequences[at] = item.sequenceId
        // Pooling reads every token.
        wanted[at++] = 1
      }
    return at
  }
  return {
    decode: async (items) => {
      const size = items.reduce((sum, item) => sum + item.tokens.length, 0)
      if (size === 0 || size > capacity) throw new RangeError(`${size} tokens in a batch of ${capacity}`)
      for (const { sequenceId } of items) clear(sequenceId)
      write(items)
      interrupt.set(false)
      evaluationEnds(await onThread(library.decode, context, { n_tokens: size, ...buffers.addresses }))
      await onThread(library.synchronize, context)
      return items.map(({ sequenceId }) => sequenceId)
    },
    vector: (sequenceId) => {
      const address = library.sequenceEmbedding(context, sequenceId)
      if (address === null) throw new Error("this model gives no embeddings")
      return floatsAt(address, dimensions).slice()
    },
    clear,
    interrupt: () => interrupt.set(true),
    setThreads: (threads) => library.setThreads(context, threads, threads),
  }
}
