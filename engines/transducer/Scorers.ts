// The prediction and the joint network of a transducer export, in the three published forms, as one Scorer: tokens so far and one encoder
// frame in, scores out. Inputs and outputs are found by their names and types in the graph. Every native call goes through the engine's gate.
//
// - fused: one graph `decoder_joint` with an LSTM. It runs on the states before the last token; its new states count only if a token is emitted.
// - separate: `decoder` (an LSTM) and `joiner`. The decoder runs once a token, and its output is kept until the next one, also between
//   chunks: running it again would feed the last token twice.
// - context: a `decoder` without states that takes the last tokens, two in the published exports, and a `joiner`.
import * as Effect from "effect/Effect"
import type * as Semaphore from "effect/Semaphore"
import { Tensor } from "onnxruntime-node"
import { type EngineError, loadFailed } from "../protocol/Engine.ts"
import type { OnnxSession, TensorInfo } from "../shared/onnx/OnnxSession.ts"
import { numeric, toFloat32 } from "../shared/onnx/Tensors.ts"
import type { Scorer } from "./decoding/Greedy.ts"

/** Tokens so far, as the prediction network keeps them. */
export interface Prediction {
  /** The last token, or as many as the prediction network takes. */
  readonly last: ReadonlyArray<number>
  readonly states: ReadonlyArray<Tensor>
  /** Output of a separate decoder for these tokens; undefined until it has run. */
  readonly output: Tensor | undefined
}

/** States after the last token was fed. */
type After = ReadonlyArray<Tensor>

export interface TransducerScorer extends Scorer<Prediction, After, EngineError> {
  /** Width of an encoder frame, if a graph declares it. */
  readonly width: number | undefined
  readonly form: "fused" | "separate" | "context"
}

const isFloat = ({ type }: TensorInfo): boolean =>
  type === "float32" || type === "float16" || type === "float64"

/** `[1, width, 1]`, `[1, 1, width]` or `[1, width]`, as the graph declares its input. */
const columnShape = ({ name, shape }: TensorInfo, width: number): ReadonlyArray<number> => {
  if (shape.length === 2) return [1, width]
  if (shape[2] === width || (typeof shape[1] !== "number" && name === "encoder_output")) return [1, 1, width]
  if (shape[1] !== width && name === "decoder_output" && typeof shape[2] === "number") return [1, 1, width]
  return [1, width, 1]
}

const widthOf = ({ shape }: TensorInfo): number | undefined =>
  shape.find((size): size is number => typeof size === "number" && size > 1)

const wrongType = (session: OnnxSession, { name, type }: TensorInfo) =>
  loadFailed("decoder", `${session.file}: ${name} is ${type}, which this adapter does not feed`)

/** A batch dimension may be symbolic; all others are fixed. */
const zeros = Effect.fnUntraced(function* (
  session: OnnxSession,
  info: TensorInfo,
): Effect.fn.Return<Tensor, EngineError> {
  const shape = info.shape.map((size) => (typeof size === "number" ? size : 1))
  // [layers, batch, width]: only the batch may be symbolic.
  if (info.shape.length !== 3 || typeof info.shape[0] !== "number" || typeof info.shape[2] !== "number")
    return yield* loadFailed("decoder", `${session.file}: the shape of ${info.name} is not fixed`)
  const size = shape.reduce((a, b) => a * b, 1)
  const tensor = numeric(info.type, new Float32Array(size), shape)
  return tensor ?? (yield* wrongType(session, info))
})

const columnTensor = (info: TensorInfo, values: Float32Array): Tensor =>
  numeric(info.type, values, columnShape(info, values.length)) ??
  new Tensor("float32", values, columnShape(info, values.length))

const required = (session: OnnxSession, name: string): Effect.Effect<TensorInfo, EngineError> => {
  const info = session.inputs.get(name)
  return info === undefined
    ? Effect.fail(
        loadFailed("decoder", `${session.file} has no input ${name}: it is a graph of another kind`),
      )
    : Effect.succeed(info)
}

const integers = (info: TensorInfo, values: ReadonlyArray<number>, shape: ReadonlyArray<number>): Tensor =>
  numeric(info.type, Float32Array.from(values), shape) ??
  new Tensor("int64", BigInt64Array.from(values, BigInt), shape)

/** The state inputs of an LSTM, the outputs that replace them, and its first output. */
const lstmOf = Effect.fnUntraced(function* (session: OnnxSession, notStates: ReadonlyArray<string>) {
  const targets = yield* required(session, "targets")
  const states = [...session.inputs.values()].filter(
    (info) => isFloat(info) && !notStates.includes(info.name),
  )
  const [output, ...rest] = [...session.outputs.values()].filter(isFloat)
  const next = rest.map(({ name }) => name)
  if (output === undefined || states.length === 0 || next.length !== states.length) {
    const detail = `${session.file} has ${states.length} states and ${next.length} new ones: it is cut or of another kind`
    return yield* loadFailed("decoder", detail)
  }
  const start: Array<Tensor> = []
  for (const state of states) start.push(yield* zeros(session, state))
  const length = session.inputs.get("target_length")
  const feedsOf = (token: number, before: ReadonlyArray<Tensor>): Record<string, Tensor> => ({
    targets: integers(targets, [token], [1, 1]),
    ...(length === undefined ? {} : { target_length: integers(length, [1], [1]) }),
    ...Object.fromEntries(states.map(({ name }, i) => [name, before[i]!])),
  })
  return { output: output.name, next, start, feedsOf }
})

export const make = Effect.fnUntraced(function* (
  decoder: OnnxSession,
  joiner: OnnxSession | undefined,
  gate: Semaphore.Semaphore,
  blank: number,
): Effect.fn.Return<TransducerScorer, EngineError> {
  const run = (session: OnnxSession, feeds: Record<string, Tensor>, fetches: ReadonlyArray<string>) =>
    gate.withPermit(session.run(feeds, fetches))
  if (joiner === undefined) return yield* fused(decoder, run, blank)
  return decoder.inputs.has("y")
    ? yield* contextual(decoder, joiner, run, blank)
    : yield* separate(decoder, joiner, run, blank)
})

type Run = (
  session: OnnxSession,
  feeds: Record<string, Tensor>,
  fetches: ReadonlyArray<string>,
) => Effect.Effect<Readonly<Record<string, Tensor>>, EngineError>

const fused = Effect.fnUntraced(function* (
  session: OnnxSession,
  run: Run,
  blank: number,
): Effect.fn.Return<TransducerScorer, EngineError> {
  const column = session.inputs.get("encoder_outputs")
  if (column === undefined) {
    const detail = `${session.file} takes no encoder output, so the export has a joiner, which the entry does not name`
    return yield* loadFailed("joiner", detail)
  }
  const lstm = yield* lstmOf(session, ["encoder_outputs"])
  const fetches = [lstm.output, ...lstm.next]
  return {
    form: "fused",
    width: widthOf(column),
    start: { last: [blank], states: lstm.start, output: undefined },
    score: (frame, state) => {
      const feeds = lstm.feedsOf(state.last[0]!, state.states)
      feeds[column.name] = columnTensor(column, frame)
      return Effect.map(run(session, feeds, fetches), (outputs) => ({
        row: toFloat32(outputs[lstm.output]!),
        after: lstm.next.map((name) => outputs[name]!),
        state,
      }))
    },
    extended: ({ after }, token) => ({ last: [token], states: after, output: undefined }),
  }
})

/** The joiner's two inputs and its scores. */
const joining = Effect.fnUntraced(function* (joiner: OnnxSession, run: Run) {
  const inputs = [...joiner.inputs.values()]
  const encoder = inputs.find(({ name }) => name.startsWith("encoder"))
  const decoder = inputs.find(({ name }) => name.startsWith("decoder"))
  const [scores] = [...joiner.outputs.values()].filter(isFloat)
  if (encoder === undefined || decoder === undefined || scores === undefined) {
    const names = inputs.map(({ name }) => name).join(", ")
    const detail = `${joiner.file} takes ${names}, and a joiner takes an encoder and a decoder output`
    return yield* loadFailed("joiner", detail)
  }
  const join = (frame: Float32Array, output: Tensor) =>
    Effect.map(
      run(
        joiner,
        {
          [encoder.name]: columnTensor(encoder, frame),
          [decoder.name]: columnTensor(decoder, toFloat32(output)),
        },
        [scores.name],
      ),
      (outputs) => toFloat32(outputs[scores.name]!),
    )
  return { join, width: widthOf(encoder) }
})

type Predicted = Prediction & { readonly output: Tensor }

/** Joins a frame with the output of a separate prediction network, which runs once for the tokens so far, not for every frame. */
const scoring =
  (
    join: Effect.Success<ReturnType<typeof joining>>["join"],
    predict: (state: Prediction) => Effect.Effect<Predicted, EngineError>,
  ): TransducerScorer["score"] =>
  (frame, before) => {
    const { output } = before
    const predicted = output === undefined ? predict(before) : Effect.succeed({ ...before, output })
    return Effect.flatMap(predicted, (state) =>
      Effect.map(join(frame, state.output), (row) => ({ row, after: state.states, state })),
    )
  }

const separate = Effect.fnUntraced(function* (
  decoder: OnnxSession,
  joiner: OnnxSession,
  run: Run,
  blank: number,
): Effect.fn.Return<TransducerScorer, EngineError> {
  const lstm = yield* lstmOf(decoder, [])
  const { join, width } = yield* joining(joiner, run)
  const fetches = [lstm.output, ...lstm.next]
  /** `states` of a prediction whose output is known are those after its last token. */
  const predict = (state: Prediction) =>
    Effect.map(run(decoder, lstm.feedsOf(state.last[0]!, state.states), fetches), (outputs) => ({
      last: state.last,
      states: lstm.next.map((name) => outputs[name]!),
      output: outputs[lstm.output]!,
    }))
  return {
    form: "separate",
    width,
    start: { last: [blank], states: lstm.start, output: undefined },
    score: scoring(join, predict),
    extended: ({ after }, token) => ({ last: [token], states: after, output: undefined }),
  }
})

/** Tokens that icefall's recipes give to the prediction network. */
const usualContext = 2

const contextual = Effect.fnUntraced(function* (
  decoder: OnnxSession,
  joiner: OnnxSession,
  run: Run,
  blank: number,
): Effect.fn.Return<TransducerScorer, EngineError> {
  const y = yield* required(decoder, "y")
  const [output] = [...decoder.outputs.values()].filter(isFloat)
  if (output === undefined) return yield* loadFailed("decoder", `${decoder.file} has no output`)
  const { join, width } = yield* joining(joiner, run)
  const size = Number(y.shape[1]) || usualContext
  const predict = (state: Prediction) =>
    Effect.map(run(decoder, { y: integers(y, state.last, [1, size]) }, [output.name]), (outputs) => ({
      ...state,
      output: outputs[output.name]!,
    }))
  return {
    form: "context",
    width,
    // The recipe's beginning: no token, then blank.
    start: { last: [...new Array<number>(size - 1).fill(-1), blank], states: [], output: undefined },
    score: scoring(join, predict),
    extended: ({ state }, token) => ({
      last: [...state.last.slice(1), token],
      states: [],
      output: undefined,
    }),
  }
})
