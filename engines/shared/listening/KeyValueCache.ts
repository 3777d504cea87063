// The `past_key_values.*` inputs and `present.*` outputs of an encoder-decoder export, discovered by name. Knows no
// meaning of tokens.
import * as Effect from "effect/Effect"
import { Tensor } from "onnxruntime-node"
import { type EngineError, loadFailed } from "../../protocol/Engine.ts"
import type { OnnxSession } from "../onnx/OnnxSession.ts"
import { numeric } from "../onnx/Tensors.ts"

/** Keys and values after some tokens. Immutable, so several decodings may start from one state. */
export interface DecoderState {
  /** Tokens in the cache. */
  readonly length: number
  /** `past_key_values.*` feeds, decoder and encoder. */
  readonly past: Readonly<Record<string, Tensor>>
}

interface KeyValueCache {
  readonly layers: number
  readonly initial: DecoderState
  /** The state without tokens, for `rows` texts side by side. */
  readonly initialOf: (rows: number) => DecoderState
  /** Every `present` output, for the first call. */
  readonly allOutputs: ReadonlyArray<string>
  /** Decoder `present` outputs only: those of the encoder never change after the first call. */
  readonly growingOutputs: ReadonlyArray<string>
  /** The next state. A tensor is replaced only by a non-empty output; exports may return empty encoder outputs. */
  readonly advance: (
    state: DecoderState,
    tokens: number,
    outputs: Readonly<Record<string, Tensor>>,
  ) => DecoderState
  /**
   * Frees the growing tensors of a state that will not be fed again, instead of leaving them to the
   * garbage collector: each token makes new ones, and V8 reacted to the external memory with a full collection
   * every 40 ms (measured on the demonstration model: an eighth of the time).
   */
  readonly release: (state: DecoderState) => void
  /** Frees also the encoder's keys and values: no state derived from this one will be fed again. */
  readonly end: (state: DecoderState) => void
}

/** Frees a tensor's memory at once; it is empty afterwards. */
export const freeTensor = (tensor: Tensor): void => {
  ;((tensor.data as Float32Array).buffer as ArrayBuffer).transfer(0)
}

const pastName = /^past_key_values\.(\d+)\.(decoder|encoder)\.(key|value)$/
const encoder = ".encoder."

const refuse = (file: string, problem: string) => loadFailed("decoder", `${file}: ${problem}`)

/** `known`: the graph's other inputs. Any further input means another layout, and fails. */
export const discover = Effect.fnUntraced(function* (
  session: OnnxSession,
  known: ReadonlyArray<string>,
): Effect.fn.Return<KeyValueCache, EngineError> {
  const pairs: Array<{ readonly past: string; readonly present: string }> = []
  const empty: Record<string, Tensor> = {}
  for (const { name, type, shape } of session.inputs.values()) {
    if (known.includes(name)) continue
    if (!pastName.test(name)) return yield* refuse(session.file, `unknown input ${name}`)
    const [, heads, , headWidth] = shape
    if (typeof heads !== "number" || typeof headWidth !== "number") {
      return yield* refuse(session.file, `${name} has no fixed head count and width`)
    }
    const present = name.replace("past_key_values", "present")
    if (!session.outputs.has(present)) return yield* refuse(session.file, `no output ${present}`)
    const tensor = numeric(type, new Float32Array(0), [1, heads, 0, headWidth])
    if (tensor === undefined) return yield* refuse(session.file, `${name} is ${type}`)
    empty[name] = tensor
    pairs.push({ past: name, present })
  }
  if (pairs.length === 0) return yield* refuse(session.file, "no past_key_values inputs")
  if (!session.outputs.has("logits")) return yield* refuse(session.file, "no output logits")
  const presents = pairs.map((pair) => pair.present)
  const growing = pairs.filter((pair) => !pair.past.includes(encoder)).map((pair) => pair.past)
  return {
    // Key and value, decoder and encoder.
    layers: pairs.length / 4,
    initial: { length: 0, past: empty },
    initialOf: (rows) => ({
      length: 0,
      past: Object.fromEntries(
        Object.entries(empty).map(([name, { data, dims, type }]) => [
          name,
          new Tensor(type as "float32", data as Float32Array, [rows, ...dims.slice(1)]),
        ]),
      ),
    }),
    allOutputs: presents,
    growingOutputs: presents.filter((name) => !name.includes(encoder)),
    advance: (state, tokens, outputs) => {
      const past: Record<string, Tensor> = { ...state.past }
      for (const pair of pairs) {
        const present = outputs[pair.present]
        if (present !== undefined && present.dims[0] !== 0) past[pair.past] = present
      }
      return { length: state.length + tokens, past }
    },
    release: (state) => {
      for (const name of growing) freeTensor(state.past[name]!)
    },
    end: (state) => {
      // Empty tensors are shared by all texts.
      for (const tensor of Object.values(state.past)) if (tensor.size > 0) freeTensor(tensor)
    },
  }
})

/** Fails with `LoadFailed` unless the graph declares all of `names`. */
export const requireInputs = Effect.fnUntraced(function* (
  session: OnnxSession,
  names: ReadonlyArray<string>,
): Effect.fn.Return<void, EngineError> {
  for (const name of names) {
    if (!session.inputs.has(name)) return yield* refuse(session.file, `no input ${name}`)
  }
})

/** The state after its first `length` tokens: decoder tensors are cut along their third dimension. */
export const cutTo = (state: DecoderState, length: number): DecoderState => {
  if (length >= state.length) return state
  const past: Record<string, Tensor> = {}
  for (const [name, tensor] of Object.entries(state.past)) {
    past[name] = name.includes(encoder) ? tensor : headOf(tensor, length)
  }
  return { length, past }
}

/** [1, heads, n, width] → [1, heads, length, width], copied. */
const headOf = (tensor: Tensor, length: number): Tensor => {
  const [, heads, n, width] = tensor.dims as [number, number, number, number]
  const from = tensor.data as Float32Array | Uint16Array
  const to = from.slice(0, heads * length * width)
  for (let head = 1; head < heads; head++) {
    to.set(from.subarray(head * n * width, (head * n + length) * width), head * length * width)
  }
  return new Tensor(tensor.type as "float32", to as Float32Array, [1, heads, length, width])
}
