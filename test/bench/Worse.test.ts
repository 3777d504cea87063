// The gate on quality: what counts as worse than the kept figures.
import { describe, expect, it } from "@effect/vitest"
import { atLeast, atMost, type Figure, figure } from "#harness/report/Figure.ts"
import type { Section } from "#harness/report/Result.ts"
import { worseThan } from "../../bench/run/Worse.ts"

const section = (...figures: ReadonlyArray<Figure>): Section => ({
  name: "hearing",
  parts: [{ title: "Words", method: "", figures }],
})
const errors = (percent: number) => figure("errors", "%", [percent], atMost(10))
const found = (count: number) => figure("found", "of 20", [count], atLeast(18))
const seconds = (value: number) => figure("time", "s", [value], atMost(1))

describe("worse than the kept figures", () => {
  it.each([
    ["a rate of errors that rises by more than a point", errors(5), errors(6.1), 1],
    ["one that rises by a point", errors(5), errors(6), 0],
    ["one that falls", errors(5), errors(1), 0],
    ["a count that falls by two", found(20), found(18), 1],
    ["one that falls by one", found(20), found(19), 0],
    ["one that rises", found(15), found(20), 0],
    ["a figure that cannot be read", errors(5), errors(Number.NaN), 1],
    ["one that could not be read before", errors(Number.NaN), errors(50), 0],
    ["a time, whatever it is", seconds(0.1), seconds(9), 0],
    ["a figure without a goal", figure("errors", "%", [5]), figure("errors", "%", [50]), 0],
    ["a figure with a goal that is no longer measured", errors(5), found(20), 1],
  ])("%s", (_, kept, now, count) => {
    expect(worseThan(section(kept), section(now)).length).toBe(count)
  })

  it("says which figure, and both values", () => {
    expect(worseThan(section(errors(5), found(20)), section(errors(7.5), found(20)))).toEqual([
      "hearing: Words: errors: 7.5 %, 5 % before",
    ])
  })

  it("nothing is compared with nothing", () => {
    expect(worseThan(undefined, section(errors(5)))).toEqual([
      "hearing: bench/results has no file of it to compare with",
    ])
  })
})
