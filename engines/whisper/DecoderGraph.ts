// The merged decoder graph of a published Whisper export: what is fed and fetched at each call, and nothing about
// what tokens mean. Called by WhisperWindow; every native call goes through the engine's gate, one at a time.
//
// Contract: the first call takes the whole prompt with zero-length caches and `use_cache_branch` false; it yields
// the encoder keys and values, which stay for the window. Later calls take one token each; graphs whose later calls
// hide a token from those before it take several. Rows are texts side by side, of the same length all the time.
import * as Effect from "effect/Effect"
import type * as Semaphore from "effect/Semaphore"
import type { Tensor } from "onnxruntime-node"
import type { EngineError } from "../protocol/Engine.ts"
import { type DecoderState, discover, freeTensor, requireInputs } from "../shared/listening/KeyValueCache.ts"
import type { OnnxSession } from "../shared/onnx/OnnxSession.ts"
import { bool, int64, toFloat32 } from "../shared/onnx/Tensors.ts"

export interface DecoderOutput {
  readonly state: DecoderState
  /** Logits of input position `i`, of the second row's first behind the first row's last: a view, [vocabulary]. */
  readonly row: (i: number) => Float32Array
  /** Gives the logits back to the system: no row will be looked at again. */
  readonly forget: () => void
}

export interface DecoderGraph {
  readonly layers: number
  /** All tokens at once, from an empty cache; the same in each of `hidden`'s rows. */
  readonly first: (tokens: ReadonlyArray<number>, hidden: Tensor) => Effect.Effect<DecoderOutput, EngineError>
  /** Tokens behind `state`, [rows, n] row by row: one a row, or several where the graph has been found causal. */
  readonly next: (
    tokens: ReadonlyArray<number>,
    state: DecoderState,
    hidden: Tensor,
  ) => Effect.Effect<DecoderOutput, EngineError>
  /** Frees a state that `next` gave and that will not be used again. */
  readonly release: (state: DecoderState) => void
  /** Frees what `first` gave and the encoder's share of every state behind it, when the window is done with. */
  readonly end: (output: DecoderOutput) => void
}

/** `cache_position` was declared by exports made with transformers 4.43 to 4.45 only. */
const INPUTS = ["input_ids", "use_cache_branch", "encoder_hidden_states", "cache_position"]

export const make = Effect.fnUntraced(function* (session: OnnxSession, gate: Semaphore.Semaphore) {
  yield* requireInputs(session, ["input_ids", "use_cache_branch"])
  const cache = yield* discover(session, INPUTS)
  const firstOutputs = ["logits", ...cache.allOutputs]
  const nextOutputs = ["logits", ...cache.growingOutputs]
  const takesHidden = session.inputs.has("encoder_hidden_states")
  const takesPosition = session.inputs.has("cache_position")

  const call = Effect.fnUntraced(function* (
    tokens: ReadonlyArray<number>,
    before: DecoderState,
    hidden: Tensor,
    cached: boolean,
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
    const outputs = yield* gate.withPermit(session.run(feeds, cached ? nextOutputs : firstOutputs))
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
    release: cache.release,
    end: ({ forget, state }) => {
      forget()
      cache.end(state)
    },
  }
  return graph
})
