// Chooses the CPU threads of the ONNX engines. A session's number is fixed when it is opened, and opening a large graph
// once for each number would take seconds. So one matrix product, about a layer of a published encoder, is measured
// with each number instead; the result is valid for every model on the machine, and the node stores it.
import * as Effect from "effect/Effect"
import { InferenceSession, Tensor } from "onnxruntime-node"
import { pickThreads, type Sample } from "#domain/threads/PickThreads.ts"
import type { ThreadChoice, ThreadTrial } from "#domain/threads/ThreadChoice.ts"
import { type EngineError, type EngineSpec, loadFailed } from "../../protocol/Engine.ts"
import { sessionOptions } from "./OnnxOptions.ts"
import { writeBytes, writeInteger, writeText } from "./Protobuf.ts"

/**
 * Rows, inner length and columns: 3 GFLOP, with as many rows as a Whisper encoder has positions. 16 ms on one core with
 * AVX-512; a third of it took 5.4, and pickThreads uses one thread without a trial for work below 5 ms.
 */
const [rows, inner, columns] = [1536, 1024, 1024] as const

/** Milliseconds for all runs, approximately. */
const budgetMs = 600

const message = (...fields: ReadonlyArray<Uint8Array>): Uint8Array => Buffer.concat(fields)

/** ValueInfoProto of a float matrix. */
const matrix = (name: string, ...shape: ReadonlyArray<number>) => {
  const dims = message(...shape.map((size) => writeBytes(1, writeInteger(1, size))))
  const tensor = message(writeInteger(1, 1), writeBytes(2, dims))
  return message(writeText(1, name), writeBytes(2, writeBytes(1, tensor)))
}

/** ModelProto with one `MatMul`; both factors are inputs. */
const productGraph = (): Uint8Array => {
  const graph = message(
    writeBytes(1, message(writeText(1, "a"), writeText(1, "b"), writeText(2, "c"), writeText(4, "MatMul"))),
    writeText(2, "product"),
    writeBytes(11, matrix("a", rows, inner)),
    writeBytes(11, matrix("b", inner, columns)),
    writeBytes(12, matrix("c", rows, columns)),
  )
  const operators = message(writeText(1, ""), writeInteger(2, 13))
  return message(writeInteger(1, 8), writeBytes(7, graph), writeBytes(8, operators))
}

const filled = (size: number): Float32Array => new Float32Array(size).fill(0.5)

const probe = async (trial: ThreadTrial): Promise<ThreadChoice> => {
  const graph = productGraph()
  const sessions = new Map<number, InferenceSession>()
  try {
    for (const threads of trial.counts)
      sessions.set(threads, await InferenceSession.create(graph, sessionOptions({ threads })))
    const feeds = {
      a: new Tensor("float32", filled(rows * inner), [rows, inner]),
      b: new Tensor("float32", filled(inner * columns), [inner, columns]),
    }
    const run = async (_tokens: number | undefined, threads: number): Promise<Sample> => {
      const session = sessions.get(threads)
      const startedMs = performance.now()
      const before = process.cpuUsage()
      await session?.run(feeds)
      const { system, user } = process.cpuUsage(before)
      return { ms: performance.now() - startedMs, cpuMs: (system + user) / 1000 }
    }
    // The first run of a session allocates memory, so it is not measured.
    for (const threads of trial.counts) await run(undefined, threads)
    return await pickThreads({ trial, sizes: [undefined], run, budgetMs: 3 * budgetMs })
  } finally {
    for (const session of sessions.values()) await session.release().catch(() => undefined)
  }
}

/** The stored result, or a new one. With a single count there is nothing to choose. */
export const chooseThreads = (
  _spec: EngineSpec,
  trial: ThreadTrial,
): Effect.Effect<ThreadChoice, EngineError> =>
  trial.kept !== undefined
    ? Effect.succeed(trial.kept)
    : Effect.tryPromise({
        try: () =>
          trial.counts.length < 2
            ? pickThreads({ trial, sizes: [], run: () => Promise.reject(new Error("not run")), budgetMs: 0 })
            : probe(trial),
        catch: (cause) =>
          loadFailed("", `CPU threads: ${cause instanceof Error ? cause.message : String(cause)}`),
      })
