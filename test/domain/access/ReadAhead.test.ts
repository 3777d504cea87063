// What is read ahead for a user without being charged: bounded by an allowance and by what is charged, and enough for honest conversations.
import fc from "fast-check"
import { expect, it } from "vitest"
import { ReadAhead, readAhead } from "#domain/access/ReadAhead.ts"

const contextTokens = 8_192

it("computes at most the allowance, its refill and the prompts that were charged, and one prompt more", () => {
  const step = fc.record({
    what: fc.constantFrom("read", "read", "read", "answered", "waits"),
    tokens: fc.integer({ min: 1, max: contextTokens }),
    /** Texts whose tokens are much shorter or longer than estimated. */
    charactersPerToken: fc.integer({ min: 1, max: 12 }),
    cached: fc.double({ min: 0, max: 1, noNaN: true }),
    ms: fc.nat(60_000),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200 }), (steps) => {
      let nowMs = 0
      const all = new ReadAhead(() => nowMs)
      let computed = 0
      let charged = 0
      for (const { cached, charactersPerToken, ms, tokens, what } of steps) {
        if (what === "waits") nowMs += ms
        else if (what === "answered") {
          all.answered("a", tokens)
          charged += tokens
        } else {
          const reading = all.begin("a", tokens * charactersPerToken)
          if (reading === undefined) continue
          const found = Math.floor(tokens * cached)
          reading.started(tokens, found)
          reading.ended()
          computed += tokens - found
        }
        const refilled = (nowMs / 1000) * readAhead.perSecond
        expect(computed).toBeLessThanOrEqual(readAhead.burst + refilled + charged + contextTokens)
        expect(all.left("a")).toBeLessThanOrEqual(readAhead.burst)
      }
    }),
  )
})

it("is one allowance for all conversations of a user, also for those that never start, and one for each user", () => {
  const all = new ReadAhead(() => 0)
  let reads = 0
  while (all.begin("a", 40_000) !== undefined) reads++
  expect(reads).toBe(3)
  expect(all.begin("b", 40_000)).toBeDefined()
  const others = new ReadAhead(() => 0)
  let dropped = 0
  for (let one = others.begin("c", 40_000); one !== undefined; one = others.begin("c", 40_000), dropped++)
    one.ended()
  expect(dropped).toBeGreaterThan(3)
  expect(dropped).toBeLessThan(60)
})

it("costs what its text costs where that has few tokens: a megabyte is read once, and not again soon", () => {
  const all = new ReadAhead(() => 0)
  let reads = 0
  for (let one = all.begin("a", 950_000); one !== undefined && reads < 100; one = all.begin("a", 950_000)) {
    one.started(1, 0)
    one.ended()
    reads++
  }
  expect(reads).toBe(1)
})

it("suffices for 20 conversations of one user that begin together and are answered", () => {
  let nowMs = 0
  const all = new ReadAhead(() => nowMs)
  const read = (tokens: number, cached: number): void => {
    const reading = all.begin("app", tokens * 4)
    expect(reading).toBeDefined()
    reading?.started(tokens, cached)
    reading?.ended()
  }
  const instructions = 1_500
  for (let n = 0; n < 20; n++) read(instructions, 0)
  for (let turn = 1; turn <= 60; turn++) {
    nowMs += 5_000
    for (let n = 0; n < 20; n++) {
      const before = instructions + (turn - 1) * 60
      // Two pieces of the user's words, then the answer to all of them.
      read(before + 10, before)
      read(before + 20, before + 10)
      all.answered("app", before + 30)
    }
  }
})
