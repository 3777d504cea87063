// Lines of a process: the same however its bytes arrive, bounded, with the level they show.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { LineSplitter, outputLevel } from "#domain/process/OutputLines.ts"

const linesOf = (chunks: ReadonlyArray<Buffer>): ReadonlyArray<string> => {
  const lines: Array<string> = []
  const splitter = new LineSplitter((line) => void lines.push(line.toString("latin1")))
  for (const chunk of chunks) splitter.push(chunk)
  splitter.end()
  return lines
}

describe("LineSplitter", () => {
  it("does not depend on where chunks end, and keeps no line longer than 1,000 bytes", () => {
    const text = fc.array(fc.constantFrom("a", "\n", "bc", "x".repeat(1_500)), { maxLength: 60 })
    fc.assert(
      fc.property(text, fc.array(fc.nat(5_000), { maxLength: 20 }), (parts, cuts) => {
        const whole = Buffer.from(parts.join(""))
        const at = [0, ...cuts.map((cut) => cut % (whole.length + 1)), whole.length].toSorted((a, b) => a - b)
        const chunks = at.slice(1).map((end, nth) => whole.subarray(at[nth], end))
        const expected = whole
          .toString("latin1")
          .split("\n")
          .filter((line) => line !== "")
          .map((line) => line.slice(0, 1_000))
        expect(linesOf(chunks)).toEqual(expected)
      }),
    )
  })
})

it.each([
  ["[E:onnxruntime:, sequential_executor.cc:516 ExecuteKernel] Non-zero status code", "error"],
  ["[W:onnxruntime:Default, device_discovery.cc:164] GPU device discovery failed", "warn"],
  ["error: llama_model_load: error loading model: tensor data is not within the file bounds", "error"],
  ["/build/ggml.c:123: GGML_ASSERT(x > 0) failed", "error"],
  ["terminate called after throwing an instance of 'std::bad_alloc'", "error"],
  ["FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", "error"],
  ["TypeError: Cannot read properties of undefined (reading 'x')", "error"],
  ["(node:12) Warning: something", "warn"],
  ["    at file:///x.ts:1:2", "debug"],
  ["llama_kv_cache: size = 12 MiB", "debug"],
  ["load: 0 errors", "debug"],
] as const)("%s is %s", (text, level) => expect(outputLevel(text)).toBe(level))
