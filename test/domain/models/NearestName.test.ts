// Mistyped names: how far they are from known ones, and which of these is named to the operator.
import fc from "fast-check"
import { expect, it } from "vitest"
import { editDistance, nearestName, suggestion } from "#domain/models/NearestName.ts"

const short = fc.string({ maxLength: 12 })

it("counts edits as one would by hand", () => {
  expect(editDistance("", "")).toBe(0)
  expect(editDistance("", "abc")).toBe(3)
  expect(editDistance("kitten", "sitting")).toBe(3)
  expect(editDistance("limt", "limit")).toBe(1)
  // Two neighbours swapped are one mistake.
  expect(editDistance("rgeion", "region")).toBe(1)
})

it("is a distance: 0 for equal texts only, the same both ways, bounded by the longer text", () => {
  fc.assert(
    fc.property(short, short, (a, b) => {
      const distance = editDistance(a, b)
      expect(distance === 0).toBe(a === b)
      expect(editDistance(b, a)).toBe(distance)
      expect(distance).toBeLessThanOrEqual(Math.max(a.length, b.length))
      expect(distance).toBeGreaterThanOrEqual(Math.abs(a.length - b.length))
    }),
  )
})

it("finds a name with one character dropped, doubled or replaced", () => {
  const names = ["contextTokens", "batchTokens", "promptShare", "flashAttention", "slots", "runtime"]
  fc.assert(
    fc.property(
      fc.constantFrom(...names),
      fc.nat(),
      fc.constantFrom("drop", "double", "replace"),
      (name, n, how) => {
        const at = n % name.length
        const character = how === "drop" ? "" : how === "double" ? name[at]!.repeat(2) : "z"
        expect(nearestName(name.slice(0, at) + character + name.slice(at + 1), names)).toBe(name)
      },
    ),
  )
})

it("does not mind upper case, hyphens and underscores, takes beginnings, and names nothing far off", () => {
  const known = ["contextTokens", "slots", "sha256", "runtime"]
  expect(nearestName("context_tokens", known)).toBe("contextTokens")
  expect(nearestName("contextToken", known)).toBe("contextTokens")
  expect(nearestName("slot", known)).toBe("slots")
  expect(nearestName("runtimes", known)).toBe("runtime")
  expect(nearestName("sha", known)).toBe("sha256")
  expect(nearestName("temperature", known)).toBeUndefined()
  expect(nearestName("x".repeat(100_000), known)).toBeUndefined()
  expect(suggestion("slot", known)).toBe('; did you mean "slots"?')
  expect(suggestion("temperature", known)).toBe("; allowed are contextTokens, slots, sha256, runtime")
  expect(suggestion("temperature", [])).toBe("; none is allowed here")
})
