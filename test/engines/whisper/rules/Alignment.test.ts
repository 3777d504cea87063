// Times of tokens by attention: the path against all paths, and weights whose times are known.
import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { firstFrames, tokenFrames } from "#engines/whisper/rules/Alignment.ts"

/** The largest sum of weights over all monotonic paths, by trying them. */
const largestSum = (weights: ReadonlyArray<Float32Array>): number => {
  const rows = weights.length
  const frames = weights[0]!.length
  const from = (row: number, frame: number): number => {
    if (row >= rows || frame >= frames) return Number.NEGATIVE_INFINITY
    const own = weights[row]![frame]!
    if (row === rows - 1 && frame === frames - 1) return own
    return own + Math.max(from(row + 1, frame + 1), from(row + 1, frame), from(row, frame + 1))
  }
  return from(0, 0)
}

/** The largest sum of a path whose rows begin at these frames. */
const sumFrom = (weights: ReadonlyArray<Float32Array>, starts: ReadonlyArray<number>): number => {
  const frames = weights[0]!.length
  let sum = 0
  for (const [row, values] of weights.entries()) {
    const begin = starts[row]!
    const next = starts[row + 1]
    // A row ends where the next one begins, or one frame before.
    const ends = next === undefined ? [frames - 1] : [next, next - 1].filter((end) => end >= begin)
    sum += Math.max(...ends.map((end) => values.slice(begin, end + 1).reduce((a, b) => a + b, 0)))
  }
  return sum
}

describe("the path", () => {
  it("is one of the best", () => {
    const weights = fc
      .record({ rows: fc.integer({ min: 1, max: 5 }), frames: fc.integer({ min: 1, max: 6 }) })
      .chain(({ frames, rows }) =>
        fc.array(fc.array(fc.integer({ min: -4, max: 4 }), { minLength: frames, maxLength: frames }), {
          minLength: rows,
          maxLength: rows,
        }),
      )
    fc.assert(
      fc.property(weights, (values) => {
        const table = values.map((row) => Float32Array.from(row))
        const starts = firstFrames(table)
        expect(starts).toHaveLength(table.length)
        for (const [i, start] of starts.entries()) expect(start).toBeGreaterThanOrEqual(starts[i - 1] ?? 0)
        expect(sumFrom(table, starts)).toBeGreaterThanOrEqual(largestSum(table))
      }),
      { numRuns: 300 },
    )
  })

  it("of nothing is nothing", () => {
    expect(firstFrames([])).toEqual([])
    expect(firstFrames([new Float32Array(0)])).toEqual([0])
  })
})

describe("tokens", () => {
  const width = 200
  const before = 4
  /** Token i, and the end of the text, are written by the position before them. */
  const headOf = (starts: ReadonlyArray<number>, noise: (row: number, frame: number) => number) => {
    const rows = before + starts.length
    const values = new Float32Array(rows * width)
    for (let row = 0; row < rows; row++) {
      const own = values.subarray(row * width, (row + 1) * width)
      for (let frame = 0; frame < width; frame++) own[frame] = noise(row, frame)
      const at = row - before + 1
      if (at >= 0 && at < starts.length) own.fill(1, starts[at], starts[at + 1] ?? starts[at]! + 9)
    }
    return { values, width }
  }

  it("begin where the heads that follow the speech look, whatever the padding has", () => {
    const starts = [0, 22, 35, 60, 61 + 8, 120]
    const tokens = starts.length - 1
    const quiet = headOf(starts, (row, frame) => (frame >= 130 ? 3 : 0.01 * ((7 * row + 3 * frame) % 5)))
    const other = headOf(starts, (row, frame) => 0.02 * ((5 * row + 11 * frame) % 7))
    const found = tokenFrames([quiet, other], before, tokens, 130)
    expect(found).toHaveLength(tokens + 1)
    found.forEach((frame, i) => expect(Math.abs(frame - starts[i]!)).toBeLessThanOrEqual(3))
  })

  it("of weights that are all equal are in order, and inside the audio", () => {
    const found = tokenFrames([{ values: new Float32Array(8 * width).fill(1 / width), width }], 3, 4, 50)
    expect(found).toHaveLength(5)
    for (const [i, frame] of found.entries()) {
      expect(frame).toBeGreaterThanOrEqual(found[i - 1] ?? 0)
      expect(frame).toBeLessThan(50)
    }
  })
})
