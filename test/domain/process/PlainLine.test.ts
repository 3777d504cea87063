import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { exceptionReason, plainLine } from "#domain/process/PlainLine.ts"

describe("plainLine", () => {
  it("is one bounded line without control characters, for any input", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: "binary", maxLength: 2_000 }),
        fc.integer({ min: 1, max: 500 }),
        (text, max) => {
          const line = plainLine(text, max)
          expect(line.length).toBeLessThanOrEqual(max)
          expect(line).not.toMatch(/[\p{Cc}\u2028\u2029\u202e]/u)
        },
      ),
    )
  })

  it("removes colours and cursor movement", () => {
    expect(plainLine("\u001b[31mred\u001b[0m and \u001b]0;title\u0007plain\r\n")).toBe("red and plain")
  })

  it("does not cut a character in half", () => {
    expect(plainLine("😀😀😀", 4)).toBe("😀…")
  })
})

describe("exceptionReason", () => {
  it("leaves out what a parser quotes", () => {
    const secret = "my secret text"
    try {
      JSON.parse(secret)
    } catch (cause) {
      expect(exceptionReason(cause)).toMatch(/^SyntaxError: /)
      expect(exceptionReason(cause)).not.toContain("secret")
    }
    expect(exceptionReason(new TypeError('cannot read "a b'))).toBe('TypeError: cannot read "…"')
  })
})
