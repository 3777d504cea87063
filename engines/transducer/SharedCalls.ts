// Chunks of several speakers that wait at the same time go through one call of the encoder: their tensors are joined along the axis of the
// batch, and its outputs divided again. While a call or a decoding runs, chunks of other requests gather, so nothing waits for company.
// A row's result does not depend on the rows beside it; `agrees` tries that at a load.
import * as Effect from "effect/Effect"
import type * as Semaphore from "effect/Semaphore"
import { Tensor } from "onnxruntime-node"
import type { EngineError } from "../protocol/Engine.ts"
import type { OnnxSession, TensorInfo } from "../shared/onnx/OnnxSession.ts"
import { toNumbers } from "../shared/onnx/Tensors.ts"

type Feeds = Readonly<Record<string, Tensor>>

interface SharedCalls {
  /** Rows of one call at most; 1 where the graph takes one. */
  readonly most: number
  /** One row; the batch of each of its tensors is 1. */
  readonly run: (feeds: Feeds) => Effect.Effect<Feeds, EngineError>
}

/** The axis of the batch: the first or the second, if it has no fixed length. */
export const batchAxis = ({ shape }: TensorInfo): 0 | 1 | undefined => {
  if (typeof shape[0] !== "number" || shape[0] < 1) return 0
  return shape.length > 1 && (typeof shape[1] !== "number" || shape[1] < 1) ? 1 : undefined
}

type Values = Float32Array

const madeLike = (tensor: Tensor, values: Values, dims: ReadonlyArray<number>): Tensor =>
  new Tensor(tensor.type as "float32", values, dims)

const emptyLike = (tensor: Tensor, size: number): Values => {
  const { constructor } = tensor.data as Float32Array
  return new (constructor as new (size: number) => Float32Array)(size)
}

const sizeOf = (dims: ReadonlyArray<number>): number => dims.reduce((a, b) => a * b, 1)

/** Tensors of batch 1 as one. @throws where they differ in shape */
export const joined = (rows: ReadonlyArray<Tensor>, axis: 0 | 1): Tensor => {
  const [first] = rows
  const { dims } = first!
  const outer = axis === 0 ? 1 : dims[0]!
  const inner = sizeOf(dims.slice(axis + 1))
  const values = emptyLike(first!, rows.length * outer * inner)
  for (const [row, tensor] of rows.entries()) {
    if (tensor.size !== outer * inner) throw new Error("rows of different shapes")
    const own = tensor.data as Values
    for (let i = 0; i < outer; i++)
      values.set(own.subarray(i * inner, (i + 1) * inner), (i * rows.length + row) * inner)
  }
  return madeLike(first!, values, [...dims.slice(0, axis), rows.length, ...dims.slice(axis + 1)])
}

/** The tensors of each of `count` rows, copied. @throws where the batch is not so long */
export const divided = (tensor: Tensor, count: number, axis: 0 | 1): ReadonlyArray<Tensor> => {
  const { dims } = tensor
  if (dims[axis] !== count) throw new Error("a batch of another length")
  const outer = axis === 0 ? 1 : dims[0]!
  const inner = sizeOf(dims.slice(axis + 1))
  const all = tensor.data as Values
  return Array.from({ length: count }, (_, row) => {
    const values = emptyLike(tensor, outer * inner)
    for (let i = 0; i < outer; i++) {
      const from = (i * count + row) * inner
      values.set(all.subarray(from, from + inner), i * inner)
    }
    return madeLike(tensor, values, [...dims.slice(0, axis), 1, ...dims.slice(axis + 1)])
  })
}

/** Axes of the batch of all inputs and outputs; undefined where one of them has none. */
type Axes = ReadonlyMap<string, 0 | 1>

interface Waiting {
  readonly feeds: Feeds
  outputs: Feeds | undefined
}

/** Lets requests that have arrived already begin. */
const nextTick = Effect.callback<void>((resume) => {
  const timer = setImmediate(() => resume(Effect.void))
  return Effect.sync(() => clearImmediate(timer))
})

/**
 * @param fetches the outputs that are wanted
 * @param axes undefined: one row a call
 */
export const make = (
  session: OnnxSession,
  gate: Semaphore.Semaphore,
  fetches: ReadonlyArray<string>,
  axes: Axes | undefined,
  most: number,
): SharedCalls => {
  const alone = (feeds: Feeds) => session.run(feeds, fetches)
  if (axes === undefined || most < 2) return { most: 1, run: (feeds) => gate.withPermit(alone(feeds)) }
  const waiting: Array<Waiting> = []
  const together = (rows: ReadonlyArray<Waiting>) =>
    Effect.map(
      Effect.suspend(() => {
        const names = Object.keys(rows[0]!.feeds)
        const join = (name: string) =>
          joined(
            rows.map(({ feeds }) => feeds[name]!),
            axes.get(name)!,
          )
        return session.run(Object.fromEntries(names.map((name) => [name, join(name)])), fetches)
      }),
      (outputs) => {
        const parts = fetches.map((name) => divided(outputs[name]!, rows.length, axes.get(name)!))
        rows.forEach((row, i) => {
          row.outputs = Object.fromEntries(fetches.map((name, at) => [name, parts[at]![i]!]))
        })
      },
    )
  /** The first row that gets the gate runs those that wait with it. If their call fails, each of them tries again by itself. */
  const lead = (row: Waiting): Effect.Effect<Feeds, EngineError> =>
    Effect.suspend(() => {
      if (row.outputs !== undefined) return Effect.succeed(row.outputs)
      const at = waiting.indexOf(row)
      // Its call has failed.
      if (at === -1) return alone(row.feeds)
      const rows = [row, ...waiting.filter((other) => other !== row)].slice(0, most)
      for (const taken of rows) waiting.splice(waiting.indexOf(taken), 1)
      if (rows.length === 1) return alone(row.feeds)
      return Effect.flatMap(Effect.exit(Effect.uninterruptible(together(rows))), () =>
        row.outputs === undefined ? alone(row.feeds) : Effect.succeed(row.outputs),
      )
    })
  return {
    most,
    run: (feeds) =>
      Effect.suspend(() => {
        const row: Waiting = { feeds, outputs: undefined }
        waiting.push(row)
        return Effect.andThen(nextTick, gate.withPermit(lead(row))).pipe(
          Effect.ensuring(
            Effect.sync(() => {
              const at = waiting.indexOf(row)
              if (at !== -1) waiting.splice(at, 1)
            }),
          ),
        )
      }),
  }
}

/** Share of the largest value by which a row may differ: the order of sums may be another one. */
const tolerance = 1e-4

/** Whether two rows in one call give what each gives by itself. Exports may declare a free batch and not support it. */
export const agrees = (
  session: OnnxSession,
  rows: readonly [Feeds, Feeds],
  fetches: ReadonlyArray<string>,
  axes: Axes,
): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const names = Object.keys(rows[0])
    const feeds = names.map((name) => [name, joined([rows[0][name]!, rows[1][name]!], axes.get(name)!)])
    const both = yield* session.run(Object.fromEntries(feeds), fetches)
    for (const [i, row] of rows.entries()) {
      const own = yield* session.run(row, fetches)
      for (const name of fetches) {
        const part = toNumbers(divided(both[name]!, 2, axes.get(name)!)[i]!)
        const single = toNumbers(own[name]!)
        const allowed = tolerance * single.reduce((most, value) => Math.max(most, Math.abs(value)), 1e-6)
        if (part.length !== single.length) return false
        if (!single.every((value, at) => Math.abs(value - part[at]!) <= allowed)) return false
      }
    }
    return true
  }).pipe(Effect.catchCause(() => Effect.succeed(false)))
