// Reading operators out of a graph file: counts, subgraphs, random ones, damaged files.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit } from "effect"
import fc from "fast-check"
import { operatorCounts, requireRepeatable } from "#engines/shared/onnx/GraphOperators.ts"
import { ToyGraph } from "../../../support/engines/ToyOnnxGraph.ts"

const fileWith = (model: Uint8Array) =>
  Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "onnx-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true })),
  ).pipe(
    Effect.map((folder) => {
      writeFileSync(join(folder, "toy.onnx"), model)
      return join(folder, "toy.onnx")
    }),
  )

/** A branch in an `If` draws the noise; the weights before it are larger than the reader's window. */
const nested = (operator: string): Uint8Array => {
  const graph = new ToyGraph()
  const flag = graph.input("flag", "bool", [])
  const weights = graph.constant("float32", [50_000], new Float32Array(50_000))
  const branch = (type: string): ToyGraph => {
    const inner = new ToyGraph()
    inner.output("out", "float32", undefined, inner.op(type, [weights]))
    return inner
  }
  graph.output("y", "float32", undefined, graph.op("Abs", [weights]))
  graph.op("If", [flag], { then_branch: branch("Neg"), else_branch: branch(operator) }, ["chosen"])
  return graph.encodeModel()
}

describe("graph operators", () => {
  it.effect("are counted through subgraphs and past weights", () =>
    Effect.gen(function* () {
      const counts = yield* operatorCounts(yield* fileWith(nested("RandomNormalLike")))
      expect(Object.fromEntries(counts)).toEqual({ Abs: 1, Identity: 3, If: 1, Neg: 1, RandomNormalLike: 1 })
    }),
  )

  it.effect("that draw random numbers are refused by name", () =>
    Effect.gen(function* () {
      yield* requireRepeatable(yield* fileWith(nested("Relu")))
      const error = yield* Effect.flip(requireRepeatable(yield* fileWith(nested("RandomUniformLike"))))
      expect(error.reason).toBe("LoadFailed")
      expect(error.detail).toContain("toy.onnx: draws random numbers (RandomUniformLike ×1)")
    }),
  )

  it.effect("of damaged files are an error or a count, never a hang or a crash", () =>
    Effect.gen(function* () {
      const whole = nested("RandomNormal")
      const cut = yield* Effect.exit(operatorCounts(yield* fileWith(whole.subarray(0, whole.length / 2))))
      expect(Exit.isFailure(cut)).toBe(true)
      const missing = yield* Effect.flip(operatorCounts("/nowhere/toy.onnx"))
      expect(missing.detail).not.toContain("/nowhere")
      yield* Effect.promise(() =>
        fc.assert(
          fc.asyncProperty(fc.uint8Array({ maxLength: 64 }), async (bytes) => {
            const exit = await Effect.runPromiseExit(
              Effect.scoped(Effect.flatMap(fileWith(bytes), operatorCounts)),
            )
            if (Exit.isFailure(exit)) expect(exit.cause.reasons[0]?._tag).toBe("Fail")
          }),
          { numRuns: 60 },
        ),
      )
    }),
  )
})
