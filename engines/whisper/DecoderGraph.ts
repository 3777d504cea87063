// The merged decoder graph of a published Whisper export: the inputs and outputs of each call, without the meaning of
// tokens. Every native call goes through the engine's gate, one at a time.
//
// The first call takes the whole prompt with zero-length caches and `use_cache_branch` false; it returns the encoder
// keys and values, which stay for the window. Later calls take one token each; causal graphs take several.
// Rows are texts side by side, all of the same length.
import * as Effect from "effect/Effect"
import type * as Semaphore from "effect/Semaphore"
import type { Tensor } from "onnxruntime-node"
import type { EngineError } from "../protocol/Engine.ts"
import { type DecoderState, discover, freeTensor, requireInputs } from "../shared/listening/KeyValueCache.ts"
import type { OnnxSession } from "../shared/onnx/OnnxSession.ts"
import { bool, int64, toFloat32 } from "../shared/onnx/Tensors.ts"
import type { HeadWeights } from "./rules/Alignment.ts"

export interface DecoderOutput {
  readonly state: DecoderState
  /** Logits of input position `i`, a view [vocabulary]. The positions of the second row follow those of the first. */
  readonly row: (i: number) => Float32Array
  /** Frees the logits; no row may be read afterwards. */
  readonly forget: () => void
}

export interface DecoderGraph {
  readonly layers: number
  /** Feeds all tokens at once from an empty cache, the same for each row of `hidden`. */
  readonly first: (tokens: ReadonlyArray<number>, hidden: Tensor) => Effect.Effect<DecoderOutput, EngineError>
  /** Feeds tokens after `state`, [rows, n] row by row: one a row, or several if the graph was found causal. */
  readonly next: (
    tokens: ReadonlyArray<number>,
    state: DecoderState,
    hidden: Tensor,
  ) => Effect.Effect<DecoderOutput, EngineError>
  /** Frees a state that `next` returned and that will not be used again. */
  readonly release: (state: DecoderState) => void
  /**
   * The weights of the alignment heads while the graph reads all of these tokens at once from an empty cache. Undefined for exports that do
   * not return cross attentions.
   */
  readonly attend:
    | ((
        tokens: ReadonlyArray<number>,
        hidden: Tensor,
      ) => Effect.Effect<ReadonlyArray<HeadWeights>, EngineError>)
    | undefined
  /** Frees what `first` returned and the encoder part of every later state; for the end of a window. */
  readonly end: (output: DecoderOutput) => void
}

/** Output of exports with cross attentions: [rows, heads, tokens, frames], each row of weights with the sum 1. */
const attentionOf = (layer: number): string => `cross_attentions.${layer}`

const weightsOf = (attention: Tensor, head: number): HeadWeights => {
  const [, , tokens = 0, width = 0] = attention.dims
  const size = tokens * width
  return { values: toFloat32(attention).subarray(head * size, (head + 1) * size), width }
}

/** Only exports made with transformers 4.43 to 4.45 declare `cache_position`. */
const inputs = ["input_ids", "use_cache_branch", "encoder_hidden_states", "cache_position"]

/** @param alignmentHeads layer and head of those that follow the speech */
export const make = Effect.fnUntraced(function* (
  session: OnnxSession,
  gate: Semaphore.Semaphore,
  alignmentHeads: ReadonlyArray<readonly [layer: number, head: number]>,
) {
  yield* requireInputs(session, ["input_ids", "use_cache_branch"])
  const cache = yield* discover(session, inputs)
  const firstOutputs = ["logits", ...cache.allOutputs]
  const nextOutputs = ["logits", ...cache.growingOutputs]
  const attentionLayers = [...new Set(alignmentHeads.map(([layer]) => layer))]
  const attends =
    attentionLayers.length > 0 && attentionLayers.every((layer) => session.outputs.has(attentionOf(layer)))
  const takesHidden = session.inputs.has("encoder_hidden_states")
  const takesPosition = session.inputs.has("cache_position")

  const run = Effect.fnUntraced(function* (
    tokens: ReadonlyArray<number>,
    before: DecoderState,
    hidden: Tensor,
    cached: boolean,
    fetches: ReadonlyArray<string>,
  ) {
    const rows = hidden.dims[0]!
    const length = tokens.length / rows
    const feeds: Record<string, Tensor> = { ...before.past }
    feeds.input_ids = int64(tokens, [rows, length])
    feeds.use_cache_branch = bool(cached)
    if (takesHidden) feeds.encoder_hidden_states = hidden
    if (takesPosition) {
      const positions = Array.from({ length }, (_, i) => before.length + i)
      feeds.cache_position = int64(positions, [length])
    }
    return yield* gate.withPermit(session.run(feeds, fetches))
  })

  const call = Effect.fnUntraced(function* (
    tokens: ReadonlyArray<number>,
    before: DecoderState,
    hidden: Tensor,
    cached: boolean,
  ) {
    const length = tokens.length / hidden.dims[0]!
    const outputs = yield* run(tokens, before, hidden, cached, cached ? nextOutputs : firstOutputs)
    const logits = outputs.logits!
    const values = toFloat32(logits)
    const vocabulary = logits.dims[2]!
    return {
      state: cache.advance(before, length, outputs),
      row: (i) => values.subarray(i * vocabulary, (i + 1) * vocabulary),
      forget: () => freeTensor(logits),
    } satisfies DecoderOutput
  })

  const graph: DecoderGraph = {
    layers: cache.layers,
    first: (tokens, hidden) => {
      const rows = hidden.dims[0]!
      return rows === 1
        ? call(tokens, cache.initial, hidden, false)
        : call(Array.from({ length: rows }, () => tokens).flat(), cache.initialOf(rows), hidden, false)
    },
    next: (tokens, state, hidden) => call(tokens, state, hidden, true),
    attend: attends
      ? (tokens, hidden) =>
          Effect.map(run(tokens, cache.initial, hidden, false, attentionLayers.map(attentionOf)), (outputs) =>
            alignmentHeads.map(([layer, head]) => weightsOf(outputs[attentionOf(layer)]!, head)),
          )
      : undefined,
    release: cache.release,
    end: ({ forget, state }) => {
      forget()
      cache.end(state)
    },
  }
  return graph
})
