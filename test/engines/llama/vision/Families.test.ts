// What pictures of any shape become in a prompt: how many rows, in which tiles.
import fc from "fast-check"
import { expect, it } from "vitest"
import type { TowerFile } from "#engines/llama/tower/TowerFile.ts"
import { families, type PicturePlan, squaresOf } from "#engines/llama/vision/Families.ts"

const fileOf = (changes: Partial<TowerFile>): TowerFile => ({
  projector: "idefics3",
  width: 64,
  heads: 4,
  blocks: 2,
  feedForward: 128,
  patch: 16,
  size: 512,
  merge: 4,
  longest: 2048,
  epsilon: 1e-6,
  activation: "gelu",
  mean: [0.5, 0.5, 0.5],
  deviation: [0.5, 0.5, 0.5],
  shapes: new Map(),
  ...changes,
})

const rowsOf = ({ parts }: PicturePlan): number =>
  parts.reduce((sum, part) => sum + (part.kind === "rows" ? part.columns * part.lines : 0), 0)

const sides = fc.record({
  width: fc.integer({ min: 1, max: 30_000 }),
  height: fc.integer({ min: 1, max: 30_000 }),
})

it("SmolVLM: the documented rows of its pictures", () => {
  const plan = (width: number, height: number, small = false) =>
    rowsOf(families.idefics3.plan(fileOf({}), { width, height }, small))
  expect(plan(512, 512)).toBe(17 * 64)
  expect(plan(2000, 1000)).toBe(9 * 64)
  expect(plan(4000, 1)).toBe(5 * 64)
  expect(plan(1, 4000)).toBe(5 * 64)
  expect(plan(2000, 1000, true)).toBe(64)
})

it("SmolVLM: at most four by four tiles and the whole", () => {
  fc.assert(
    fc.property(sides, (size) => {
      for (const longest of [2048, undefined]) {
        const { parts } = families.idefics3.plan(fileOf({ longest }), size, false)
        const tiles = parts.flatMap((part) => (part.kind === "rows" ? [part.tile] : []))
        expect([...tiles].sort((a, b) => a - b)).toEqual(tiles.map((_, at) => at))
        if (longest !== undefined) expect(tiles.length).toBeLessThanOrEqual(17)
      }
    }),
  )
})

it("Qwen: whole squares of 32 pixels, never more than 4,096, or 256 for a small version", () => {
  const file = fileOf({ projector: "qwen3vl_merger", merge: 2 })
  fc.assert(
    fc.property(sides, (size) => {
      const all = rowsOf(families.qwen3vl_merger.plan(file, size, false))
      expect(all).toBeLessThanOrEqual(4_096)
      expect(all).toBeGreaterThanOrEqual(1)
      expect(rowsOf(families.qwen3vl_merger.plan(file, size, true))).toBeLessThanOrEqual(256)
      const squares = squaresOf(size, 32, { least: 8 * 1024, most: 4_096 * 1024 })
      expect([squares.width % 32, squares.height % 32]).toEqual([0, 0])
    }),
  )
})

it("LLaVA: as many rows as patches, whatever the picture", () => {
  const file = fileOf({ projector: "mlp", size: 336, patch: 14, merge: 1 })
  for (const size of [
    { width: 1, height: 1 },
    { width: 4000, height: 1 },
  ])
    expect(rowsOf(families.mlp.plan(file, size, false))).toBe(576)
})
