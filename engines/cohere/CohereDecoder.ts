// The decoder graph of a Cohere Transcribe export in the Hugging Face layout: the inputs and outputs of each call,
// without text. Every native call goes through the engine's gate, one at a time.
//
// The first call takes the whole prompt with zero-length caches, by which the graph recognises it; it returns the
// encoder keys and values, which stay for the piece. Later calls take one token each.
import * as Effect from "effect/Effect"
import type * as Semaphore from "effect/Semaphore"
import { Tensor } from "onnxruntime-node"
import type { EngineError } from "../protocol/Engine.ts"
import { type DecoderState, discover, requireInputs } from "../shared/listening/KeyValueCache.ts"
import type { OnnxSession } from "../shared/onnx/OnnxSession.ts"
import { int64, toFloat32 } from "../shared/onnx/Tensors.ts"

interface CohereOutput {
  readonly state: DecoderState
  /** Logits after the last token fed, [vocabulary]; the caller may change them. */
  readonly logits: Float32Array
}

export interface CohereDecoder {
  readonly layers: number
  readonly initial: DecoderState
  /** Feeds `tokens` after `state`: the whole prompt after `initial`, then one at a time. */
  readonly feed: (
    tokens: ReadonlyArray<number>,
    state: DecoderState,
    hidden: Tensor,
  ) => Effect.Effect<CohereOutput, EngineError>
  /** Frees a state that `feed` returned and that will not be fed again. */
  readonly release: (state: DecoderState) => void
}

const inputs = [
  "input_ids",
  "attention_mask",
  "position_ids",
  "num_logits_to_keep",
  "encoder_hidden_states",
  "encoder_attention_mask",
]

export const make = Effect.fnUntraced(function* (session: OnnxSession, gate: Semaphore.Semaphore) {
  yield* requireInputs(session, ["input_ids", "encoder_hidden_states"])
  const cache = yield* discover(session, inputs)
  const firstOutputs = ["logits", ...cache.allOutputs]
  const nextOutputs = ["logits", ...cache.growingOutputs]

  const feed = Effect.fnUntraced(function* (
    tokens: ReadonlyArray<number>,
    state: DecoderState,
    hidden: Tensor,
  ) {
    const count = tokens.length
    const feeds: Record<string, Tensor> = { ...state.past }
    // Only inputs that the graph declares.
    const offer = (name: string, tensor: () => Tensor) => {
      if (session.inputs.has(name)) feeds[name] = tensor()
    }
    offer("input_ids", () => int64(tokens, [1, count]))
    offer("encoder_hidden_states", () => hidden)
    offer("attention_mask", () => ones(state.length + count))
    const positions = tokens.map((_, i) => state.length + i)
    offer("position_ids", () => int64(positions, [1, count]))
    offer("num_logits_to_keep", () => new Tensor("int64", BigInt64Array.of(1n), []))
    offer("encoder_attention_mask", () => ones(hidden.dims[1]!))
    const first = state.length === 0
    const outputs = yield* gate.withPermit(session.run(feeds, first ? firstOutputs : nextOutputs))
    const values = toFloat32(outputs.logits!)
    // Some graphs return the logits of every position; only the last are used.
    const logits = values.subarray(values.length - outputs.logits!.dims[2]!)
    return { state: cache.advance(state, count, outputs), logits } satisfies CohereOutput
  })

  const decoder: CohereDecoder = {
    layers: cache.layers,
    initial: cache.initial,
    feed,
    release: cache.release,
  }
  return decoder
})

const ones = (length: number): Tensor => new Tensor("int64", new BigInt64Array(length).fill(1n), [1, length])
