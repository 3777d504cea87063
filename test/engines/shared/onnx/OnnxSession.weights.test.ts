// Sessions over files: what a graph declares, a call, errors without paths, and element types.
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Scope } from "effect"
import fc from "fast-check"
import { InferenceSession } from "onnxruntime-node"
import { vi } from "vitest"
import { CoreContention } from "#engines/shared/onnx/CoreContention.ts"
import * as OnnxSession from "#engines/shared/onnx/OnnxSession.ts"
import * as Tensors from "#engines/shared/onnx/Tensors.ts"
import { limitThreads } from "#engines/shared/onnx/ThreadLimit.ts"
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

/** y = x + x, z = x · x. */
const arithmetic = (): Uint8Array => {
  const graph = new ToyGraph()
  const x = graph.input("x", "float32", ["batch", 2])
  graph.output("y", "float32", ["batch", 2], graph.op("Add", [x, x]))
  graph.output("z", "float32", ["batch", 2], graph.op("Mul", [x, x]))
  return graph.encodeModel()
}

describe("onnx session", () => {
  it.effect("gives names, types and shapes, and runs", () =>
    Effect.gen(function* () {
      const session = yield* OnnxSession.open(yield* fileWith(arithmetic()), { threads: 1 })
      expect(session.file).toBe("toy.onnx")
      expect([...session.inputs]).toEqual([["x", { name: "x", type: "float32", shape: ["batch", 2] }]])
      expect([...session.outputs.keys()]).toEqual(["y", "z"])
      const x = Tensors.float32(Float32Array.of(1, 2, 3, 4), [2, 2])
      const both = yield* session.run({ x })
      expect([...Tensors.toFloat32(both.y!)]).toEqual([2, 4, 6, 8])
      expect([...Tensors.toFloat32(both.z!)]).toEqual([1, 4, 9, 16])
      expect(Object.keys(yield* session.run({ x }, ["z"]))).toEqual(["z"])
      expect(yield* OnnxSession.inputNamed(session, ["input", "x"])).toMatchObject({ name: "x" })
      const missing = yield* Effect.flip(OnnxSession.outputNamed(session, ["logits", "scores"]))
      expect(missing.detail).toBe("toy.onnx: has no output named logits or scores; it declares y, z")
    }),
  )

  it.effect("fails with a reason and without the folder", () =>
    Effect.gen(function* () {
      const path = yield* fileWith(Buffer.from("not a graph"))
      for (const bad of [path, `${path}.gone`]) {
        const error = yield* Effect.flip(OnnxSession.open(bad, { threads: 1 }))
        expect(error.reason).toBe("LoadFailed")
        expect(error.detail).toContain("toy.onnx")
        expect(error.detail).not.toContain(path)
      }
      const session = yield* OnnxSession.open(yield* fileWith(arithmetic()), { threads: 1 })
      const wrong = yield* Effect.flip(session.run({ x: Tensors.int64([1, 2], [1, 2]) }))
      expect(wrong).toMatchObject({ reason: "Failed" })
    }),
  )

  it.live("uses a second session with half of the threads while other models work", () =>
    Effect.gen(function* () {
      const create = vi.spyOn(InferenceSession, "create")
      // Other programs may need the cores, too; that is measured for all sessions of a process, also by the files before this one.
      vi.spyOn(CoreContention.prototype, "taken").mockReturnValue(false)
      const session = yield* OnnxSession.open(yield* fileWith(arithmetic()), { threads: 4, narrows: true })
      const x = Tensors.float32(Float32Array.of(1, 2), [1, 2])
      const opened = () => create.mock.calls.map(([, options]) => options?.intraOpNumThreads)
      const runs = session.run({ x }).pipe(Effect.map(({ y }) => [...Tensors.toFloat32(y!)]))
      expect(yield* runs).toEqual([2, 4])
      expect(opened()).toEqual([4])
      limitThreads(2)
      // The first session goes on until the second one is there.
      for (let n = 0; n < 3; n++) expect(yield* runs).toEqual([2, 4])
      yield* Effect.promise(() => Promise.all(create.mock.results.map(({ value }) => value)))
      const [wide, narrow] = yield* Effect.promise(() =>
        Promise.all(create.mock.results.map(({ value }) => value as Promise<InferenceSession>)),
      )
      const [onWide, onNarrow] = [vi.spyOn(wide!, "run"), vi.spyOn(narrow!, "run")]
      expect(yield* runs).toEqual([2, 4])
      limitThreads(4)
      expect(yield* runs).toEqual([2, 4])
      expect([onWide.mock.calls.length, onNarrow.mock.calls.length]).toEqual([1, 1])
      expect(opened()).toEqual([4, 2])
      // Only the first one spins, and only within its calls.
      expect(create.mock.calls.map(([, options]) => options?.extra?.session)).toEqual([
        { force_spinning_stop: "1" },
        { intra_op: { allow_spinning: "0" }, inter_op: { allow_spinning: "0" } },
      ])
    }).pipe(
      Effect.ensuring(
        Effect.sync(() => {
          limitThreads(Number.POSITIVE_INFINITY)
          vi.restoreAllMocks()
        }),
      ),
    ),
  )

  it.live("does not spin where there is no second session to give way to", () =>
    Effect.gen(function* () {
      const create = vi.spyOn(InferenceSession, "create")
      for (const options of [{ threads: 4 }, { threads: 1, narrows: true }])
        yield* OnnxSession.open(yield* fileWith(arithmetic()), options)
      for (const [, options] of create.mock.calls)
        expect(options?.extra?.session).toMatchObject({ intra_op: { allow_spinning: "0" } })
    }).pipe(Effect.ensuring(Effect.sync(() => vi.restoreAllMocks()))),
  )

  it("is gone with its scope", async () => {
    const scope = Scope.makeUnsafe()
    const session = await Effect.runPromise(
      fileWith(arithmetic()).pipe(
        Effect.flatMap((path) => OnnxSession.open(path, { threads: 1 })),
        Scope.provide(scope),
      ),
    )
    await Effect.runPromise(Scope.close(scope, Exit.void))
    const after = await Effect.runPromiseExit(
      session.run({ x: Tensors.float32(Float32Array.of(1, 2), [1, 2]) }),
    )
    expect(Exit.isFailure(after)).toBe(true)
  })
})

describe("tensors", () => {
  it("carry numbers in the type that a graph declares", () => {
    const values = Float32Array.of(1, -2, 3.5)
    expect(Tensors.numeric("int64", values, [3])!.data).toEqual(BigInt64Array.of(1n, -2n, 4n))
    expect(Tensors.numeric("int32", values, [3])!.data).toEqual(Int32Array.of(1, -2, 4))
    expect(Tensors.numeric("float64", values, [3])!.data).toEqual(Float64Array.of(1, -2, 3.5))
    expect(Tensors.numeric("string", values, [3])).toBeUndefined()
    expect(Tensors.bool(true).data).toEqual(Uint8Array.of(1))
    expect([...Tensors.toFloat32(Tensors.numeric("float16", values, [3])!)]).toEqual([1, -2, 3.5])
  })

  it("halve precision to the nearest value, ties to even", () => {
    for (const [value, bits] of [
      [0, 0],
      [1, 0x3c00],
      [-2, 0xc000],
      [65504, 0x7bff],
      [65520, 0x7c00],
      [2 ** -24, 1],
      [2 ** -25, 0],
      [2 ** -14, 0x0400],
      [1 + 2 ** -11, 0x3c00],
      [1 + 3 * 2 ** -11, 0x3c02],
      [Number.POSITIVE_INFINITY, 0x7c00],
    ] as const) {
      expect([value, Tensors.halfBits(value)]).toEqual([value, bits])
    }
    expect(Tensors.fromHalfBits(Tensors.halfBits(Number.NaN))).toBeNaN()
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 0xffff }), (bits) => {
        const value = Tensors.fromHalfBits(bits)
        if (!Number.isNaN(value)) expect(Tensors.halfBits(value)).toBe(bits)
      }),
      { numRuns: 2000 },
    )
  })
})
