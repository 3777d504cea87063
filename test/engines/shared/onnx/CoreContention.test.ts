// When calls on spinning threads show that other programs need the cores.
import { expect, it } from "vitest"
import { CoreContention } from "#engines/shared/onnx/CoreContention.ts"

const threads = 2
/** Calls of 50 ms that had this part of the time of their threads; returns when the last one ended. */
const calls = (contention: CoreContention, count: number, part: number, fromMs = 0): number => {
  for (let n = 1; n <= count; n++)
    contention.ran({ ms: 50, cpuMs: 50 * threads * part, threads }, fromMs + n * 50)
  return fromMs + count * 50
}

it("finds free cores free", () => {
  const contention = new CoreContention()
  expect(contention.taken(calls(contention, 100, 0.93))).toBe(false)
})

it("finds them taken after half a second of calls that lack time, for two seconds", () => {
  const contention = new CoreContention()
  expect(contention.taken(calls(contention, 9, 0.63))).toBe(false)
  const endMs = calls(contention, 1, 0.63, 450)
  expect(contention.taken(endMs)).toBe(true)
  expect(contention.taken(endMs + 1_999)).toBe(true)
  expect(contention.taken(endMs + 2_000)).toBe(false)
})

it("takes no notice of a short disturbance", () => {
  const contention = new CoreContention()
  const fromMs = calls(contention, 2, 0.5)
  expect(contention.taken(calls(contention, 20, 0.95, fromMs))).toBe(false)
})
