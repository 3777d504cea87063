// A thinking block at the beginning of a reply is removed, in any cut; elsewhere its markers are text.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { ThoughtFilter } from "#engines/llama/output/ThoughtFilter.ts"

const run = (parts: ReadonlyArray<string>, startsInside = false): string => {
  const filter = new ThoughtFilter({ open: "<think>", close: "</think>", startsInside })
  return parts.map((part) => filter.push(part)).join("") + filter.flush()
}

const split = (text: string, at: ReadonlyArray<number>): ReadonlyArray<string> => {
  const cuts = [...new Set(at.map((n) => n % (text.length + 1)))].sort((a, b) => a - b)
  return [0, ...cuts].map((start, i) => text.slice(start, cuts[i] ?? text.length))
}

const cuts = fc.array(fc.nat(200), { maxLength: 12 })
const plain = fc.string({ unit: fc.constantFrom("a", " ", "\n", "<", "t", ">"), maxLength: 30 })

it("drops the block and the space after it, wherever the text is cut", () => {
  fc.assert(
    fc.property(plain, plain, cuts, (thought, answer, at) => {
      const text = `\n<think>${thought}</think>\n\n${answer}`
      expect(run(split(text, at))).toBe(answer.trimStart())
    }),
  )
})

it("leaves every other reply alone, wherever the text is cut", () => {
  fc.assert(
    fc.property(plain, cuts, (answer, at) => {
      fc.pre(!answer.trimStart().startsWith("<think>"))
      expect(run(split(answer, at))).toBe(answer)
    }),
  )
})

it("keeps markers inside an answer", () => {
  expect(run(["Write <think> and", " </think>."])).toBe("Write <think> and </think>.")
})

it("begins inside a block that the prompt opened", () => {
  expect(run(["so", "me</thi", "nk>\nHi"], true)).toBe("Hi")
})

it("a block that never closes leaves nothing, one that never opened is text", () => {
  expect(run(["<think>hm"])).toBe("")
  expect(run(["<thi"])).toBe("<thi")
})
