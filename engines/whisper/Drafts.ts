// Decodes several windows of one file side by side as drafts, without the text in front of each, which is not known
// yet. A draft is not a result: the window's own decoding checks it and keeps the tokens that it would have chosen
// anyway.
import * as Effect from "effect/Effect"
import { Tensor } from "onnxruntime-node"
import type { EngineError } from "../protocol/Engine.ts"
import { argMax } from "../shared/listening/Sampling.ts"
import { numeric, toFloat32 } from "../shared/onnx/Tensors.ts"
import type { DecoderGraph } from "./DecoderGraph.ts"
import type { Prompt } from "./Prompt.ts"
import type { WhisperModel } from "./WhisperModel.ts"
import { restrict } from "./WhisperWindow.ts"

/**
 * A draft attends to every second encoder output: neighbours, 20 ms apart, are nearly equal (in the demonstration model
 * exactly equal), and half of them halve the cost of attention.
 */
const frameStride = 2

/** Encoder outputs [1, n, width] as one [rows, longest, width]. A shorter one is padded with its last frame, which is silent. */
const stacked = (hiddens: ReadonlyArray<Tensor>): Tensor => {
  const width = hiddens[0]!.dims[2]!
  const longest = Math.ceil(Math.max(...hiddens.map(({ dims }) => dims[1]!)) / frameStride)
  const all = new Float32Array(hiddens.length * longest * width)
  hiddens.forEach((hidden, row) => {
    const frames = toFloat32(hidden)
    const last = frames.length - width
    for (let i = 0; i < longest; i++) {
      const from = Math.min(i * frameStride * width, last)
      all.set(frames.subarray(from, from + width), (row * longest + i) * width)
    }
  })
  return numeric(hiddens[0]!.type, all, [hiddens.length, longest, width])!
}

/** Greedy tokens of each window after the same prompt. Decoding stops early once only one text is unfinished. */
export const draftsOf = Effect.fnUntraced(function* (
  model: WhisperModel,
  graph: DecoderGraph,
  hiddens: ReadonlyArray<Tensor>,
  prompt: Prompt,
): Effect.fn.Return<ReadonlyArray<ReadonlyArray<number>>, EngineError> {
  const { endOfText } = model.layout
  const hidden = stacked(hiddens)
  const texts = hiddens.map((): Array<number> => [])
  const ended = hiddens.map(() => false)
  const first = yield* graph.first(prompt.tokens, hidden)
  let output = first
  let positions = prompt.tokens.length
  for (let length = 0; length < prompt.sampleLimit; length++) {
    const next = texts.map((text, row) => {
      if (ended[row]) return endOfText
      const logits = output.row((row + 1) * positions - 1)
      restrict(model, logits, text, true)
      const token = argMax(logits)
      if (token === endOfText) ended[row] = true
      else text.push(token)
      return token
    })
    if (ended.filter((each) => !each).length < 2) break
    const before = output
    output = yield* graph.next(next, before.state, hidden)
    if (before !== first) {
      graph.release(before.state)
      before.forget()
    }
    positions = 1
  }
  if (output !== first) graph.release(output.state)
  graph.end(first)
  return texts
})

/** Arbitrary tokens that reveal whether a graph masks later tokens from earlier ones. */
const probe = [4, 3, 2, 1]
/** Share of the largest logit. A graph without a mask was off by 2 to 5 % (measured); rounding is about 1e-6. */
const probeTolerance = 1e-3

const agree = (a: Float32Array, b: Float32Array): boolean => {
  const allowed = probeTolerance * b.reduce((max, logit) => Math.max(max, Math.abs(logit)), 0)
  return a.every((logit, at) => Math.abs(logit - b[at]!) <= allowed)
}

/**
 * Whether a graph can make and check drafts: several tokens after a state, and two texts side by side, have to give
 * the same as one by one. Exports differ, and the graph does not declare it.
 */
export const takesDrafts = (model: WhisperModel, graph: DecoderGraph): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const count = 8 * model.width
    const frames = Float32Array.from({ length: 2 * count }, (_, i) => Math.sin(i))
    const hiddenOf = (row: number) =>
      new Tensor("float32", frames.slice(row * count, (row + 1) * count), [1, 8, model.width])
    const both = new Tensor("float32", frames, [2, 8, model.width])
    const prompt = [model.startOfTranscript]
    const beside = yield* graph.first(prompt, both)
    const besideNext = yield* graph.next([probe[0]!, probe[0]!], beside.state, both)
    for (const row of [0, 1]) {
      const hidden = hiddenOf(row)
      const first = yield* graph.first(prompt, hidden)
      const together = yield* graph.next(probe, first.state, hidden)
      if (!agree(beside.row(row), first.row(0)) || !agree(besideNext.row(row), together.row(0))) return false
      let { state } = first
      for (const [i, token] of probe.entries()) {
        const alone = yield* graph.next([token], state, hidden)
        if (!agree(together.row(i), alone.row(0))) return false
        state = alone.state
      }
    }
    return true
  }).pipe(Effect.catch(() => Effect.succeed(false)))
