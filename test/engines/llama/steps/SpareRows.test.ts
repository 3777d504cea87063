// Which calls for several replies get rows of idle sequences, and that these change nothing.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { CostCurve } from "#engines/llama/steps/CostCurve.ts"
import { SequenceMemory } from "#engines/llama/steps/SequenceMemory.ts"
import { SpareRows } from "#engines/llama/steps/SpareRows.ts"
import { letters, native, open, type Part, say, sharingCosts } from "./ScriptedLoop.ts"

/** Milliseconds of a call by its number of rows, as measured with 0.2 B. */
const kernel = [0, 8, 22, 25, 30, 40, 45, 49, 35, 46, 50, 52, 42, 52, 57, 60, 40]

const learnt = (...sizes: ReadonlyArray<number>) => {
  let nowMs = 0
  const costs = new CostCurve(16, () => nowMs)
  for (const size of sizes) costs.observe(size, kernel[size]!)
  const rows = new SpareRows(costs, () => nowMs)
  const call = (count: number, ms = kernel[count]!) => {
    nowMs += ms
    rows.observe(count, ms)
  }
  const pass = (ms: number) => {
    nowMs += ms
  }
  return { rows, call, pass }
}

describe("spare rows", () => {
  it("are taken where calls of as many replies turned out slower than larger ones", () => {
    const { call, rows } = learnt(1, 2, 4, 8, 16)
    const found = kernel.slice(1).map((_, at) => {
      for (let times = 0; times < 3; times++) call(at + 1)
      return rows.rowsFor(at + 1)
    })
    expect(found).toEqual([1, 2, 3, 4, 8, 8, 8, 8, 16, 16, 16, 12, 16, 16, 16, 16])
  })

  it("need calls without them, a duration of the larger call, and are given up where that is as slow", () => {
    const { call, pass, rows } = learnt(1, 8)
    expect(rows.rowsFor(7)).toBe(7)
    for (let times = 0; times < 3; times++) call(7)
    expect(rows.rowsFor(7)).toBe(8)
    expect(rows.rowsFor(5)).toBe(5)
    // Beyond 8 nothing is known.
    for (let times = 0; times < 3; times++) call(11)
    expect(rows.rowsFor(11)).toBe(11)
    for (let times = 0; times < 3; times++) call(8, 48)
    expect(rows.rowsFor(7)).toBe(7)
    pass(20_000)
    expect(rows.rowsFor(7)).toBe(7)
  })
})

it("idle sequences are spare if they are beside the replies, and not so long that the call computes more attention", () => {
  const fill = (tokens: ReadonlyArray<number>, needsCheckpoints = false) => {
    const memory = new SequenceMemory({
      native: native().native,
      slots: tokens.length,
      needsCheckpoints,
      checkpointBytes: 0,
    })
    const taken = tokens.map(() => memory.take({ prompt: [1], owner: 1, ready: 0 })!.slot)
    for (const slot of taken) {
      slot.tokens = Array(tokens[slot.id]!).fill(1)
      slot.busy = slot.id === 2 || slot.id === 3
    }
    return (count: number) => memory.spare([2, 3], count).map(({ id }) => id)
  }
  const short = fill([1, 200, 10, 20, 250, 255, 0, 9])
  expect([short(0), short(2), short(4), short(5), short(6), short(7)]).toEqual([
    [],
    [4, 5],
    [4, 5, 6, 7],
    [1, 4, 5, 6, 7],
    [0, 1, 4, 5, 6, 7],
    [],
  ])
  expect(fill([1, 256, 10, 20, 256, 1])(1)).toEqual([])
  expect(fill([1, 256, 10, 300, 256, 1])(3)).toEqual([1, 4, 5])
  // A memory that cannot be cut gives only empty ones.
  expect(fill([1, 0, 10, 20, 5, 1], true)(1)).toEqual([1])
})

/** Calls get as many rows as there are sequences. */
class AllRows extends SpareRows {
  readonly #all: number
  constructor(all: number) {
    super(new CostCurve(all))
    this.#all = all
  }
  override rowsFor(): number {
    return this.#all
  }
}

const slots = 8
const parts = fc.array(
  fc.record({ oneOf: fc.constantFrom("abc", letters) }).map((part): Part => part),
  { minLength: 2, maxLength: 12 },
)

it("a reply has the same text in a call with spare rows, and an idle sequence is continued as it was", () =>
  fc.assert(
    fc.asyncProperty(
      fc.array(parts, { minLength: 1, maxLength: 3 }),
      fc.array(parts, { minLength: 2, maxLength: 5 }),
      fc.integer({ min: 3, max: slots }),
      async (earlier, later, rows) => {
        const asked = (some: ReadonlyArray<ReadonlyArray<Part>>, letter: string) =>
          some.map((each, seed) => ({ parts: each, seed, prompt: `${letter}${letters[seed]}xyzzy` }))
        const scripted = native()
        const loop = open(scripted, slots, sharingCosts(slots), 0, new AllRows(rows))
        const first = await Promise.all(asked(earlier, "a").map((one) => say(loop, one)))
        const second = await Promise.all(asked(later, "b").map((one) => say(loop, one)))
        for (const [at, one] of asked(later, "b").entries())
          expect(second[at]!.text).toBe((await say(open(native(), 1), one)).text)
        for (const [at, one] of asked(earlier, "a").entries()) {
          const conversation = { prompt: `${one.prompt}${first[at]!.text}qq`, parts: [{ oneOf: "ab" }] }
          const { out, text } = await say(loop, conversation)
          expect(text).toBe((await say(open(native(), 1), conversation)).text)
          const { cachedTokens, promptTokens } = out.startedWith[0]!
          // All but what is always evaluated, and the last token of the earlier reply, which was not evaluated.
          expect(promptTokens - cachedTokens).toBeLessThanOrEqual(4)
        }
        const widths = scripted.calls.map((call) => call.length)
        expect(Math.max(...widths)).toBeLessThanOrEqual(slots)
      },
    ),
    { numRuns: 60 },
  ))
