// Stop sequences: found in any cut of the text, never in the output, no text held back unnecessarily.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { StopMatcher } from "#engines/llama/output/StopMatcher.ts"

/** Reference implementation: the first stop sequence to be complete cuts the text where it begins. */
const reference = (text: string, stops: ReadonlyArray<string>) => {
  for (let end = 1; end <= text.length; end++) {
    const complete = stops.filter((stop) => stop !== "" && text.slice(0, end).endsWith(stop))
    const longest = Math.max(0, ...complete.map((stop) => stop.length))
    if (longest > 0) return { text: text.slice(0, end - longest), matched: true }
  }
  return { text, matched: false }
}

const pieces = (text: string, sizes: ReadonlyArray<number>): ReadonlyArray<string> => {
  const parts: Array<string> = []
  let at = 0
  for (const size of sizes) {
    parts.push(text.slice(at, at + size))
    at += size
  }
  return [...parts, text.slice(at)]
}

const run = (parts: ReadonlyArray<string>, stops: ReadonlyArray<string>) => {
  const matcher = new StopMatcher(stops)
  let text = ""
  for (const part of parts) {
    const verdict = matcher.push(part)
    text += verdict.text
    if (verdict.matched) return { text, matched: true }
  }
  return { text: text + matcher.flush(), matched: false }
}

// Two letters make overlaps and near misses common.
const letters = (maxLength: number) => fc.string({ unit: fc.constantFrom("a", "b"), maxLength })
const sizes = fc.array(fc.nat(4), { maxLength: 40 })

it("any cut gives what reading the whole text gives", () => {
  fc.assert(
    fc.property(letters(40), fc.array(letters(5), { maxLength: 4 }), sizes, (text, stops, at) => {
      expect(run(pieces(text, at), stops)).toEqual(reference(text, stops))
    }),
    { numRuns: 2000 },
  )
})

it("holds back exactly the longest end that could become a stop sequence", () => {
  fc.assert(
    fc.property(letters(30), fc.array(letters(5), { minLength: 1, maxLength: 4 }), (text, stops) => {
      fc.pre(!reference(text, stops).matched)
      const { text: released } = new StopMatcher(stops).push(text)
      const held = text.slice(released.length)
      expect(text.startsWith(released)).toBe(true)
      const possible = stops.flatMap((stop) => Array.from(stop, (_, length) => stop.slice(0, length)))
      const longest = Math.max(0, ...possible.filter((start) => text.endsWith(start)).map((s) => s.length))
      expect(held.length).toBe(longest)
    }),
  )
})

it("finds a stop sequence across pieces and drops what follows", () => {
  expect(run(["one EN", "D", " two"], ["END"])).toEqual({ text: "one ", matched: true })
  expect(run(["Hello ST", "OOD"], ["STOP"])).toEqual({ text: "Hello STOOD", matched: false })
})

it("the one that completes first wins, the longest of those that complete together", () => {
  expect(run(["xabcd"], ["abcd", "bc"])).toEqual({ text: "xa", matched: true })
  expect(run(["xabc"], ["bc", "abc"])).toEqual({ text: "x", matched: true })
})

it("passes text through untouched without stop sequences, or with empty ones", () => {
  expect(new StopMatcher([]).push("abc")).toEqual({ text: "abc", matched: false })
  expect(run(["abc"], [""])).toEqual({ text: "abc", matched: false })
})

it("stays linear where a stop sequence repeats itself", () => {
  const stop = `${"a".repeat(200_000)}b`
  const matcher = new StopMatcher([stop])
  let released = 0
  for (let token = 0; token < 500; token++) released += matcher.push("a".repeat(1000)).text.length
  expect(released).toBe(300_000)
  expect(matcher.push("b")).toEqual({ text: "a".repeat(0), matched: true })
})
