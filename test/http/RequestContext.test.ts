// The header values of a request's context, for any client input and any order of steps.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { isRequestId, maxRequestIdLength } from "#domain/wire/RequestId.ts"
import { type Receipt, RequestContext } from "#http/RequestContext.ts"

const newId = () => "0".repeat(24)

describe("a request's id", () => {
  it("is the client's where it is plain and short, and else one of ours", () =>
    fc.assert(
      fc.property(
        fc.oneof(
          fc
            .array(fc.integer({ min: 0, max: 0xffff }), { maxLength: 160 })
            .map((codes) => String.fromCharCode(...codes)),
          fc.string({ unit: fc.constantFrom(..."aZ0._~:+/=@-, \r\n\"'"), maxLength: 160 }),
        ),
        (given) => {
          const { requestId } = new RequestContext(given, newId)
          const good = given !== "" && given.length <= maxRequestIdLength && !/[^\w.~:+/=@-]/.test(given)
          expect(requestId).toBe(good ? given : `req-${newId()}`)
          expect(requestId).toMatch(/^[\x21-\x7e]{1,128}$/)
        },
      ),
      { numRuns: 400 },
    ))

  it("has only characters of a list: every other one of the first 65,536 is refused", () => {
    const allowed = Array.from({ length: 65_536 }, (_, code) => String.fromCharCode(code)).filter((char) =>
      isRequestId(`a${char}b`),
    )
    expect(allowed.filter((char) => !/[\w.~:+/=@-]/.test(char))).toEqual([])
    expect(allowed).toHaveLength(63 + [...".~:+/=@-"].length)
  })

  it("is at most 128 characters long", () => {
    expect(isRequestId("x".repeat(128))).toBe(true)
    expect(isRequestId("x".repeat(129))).toBe(false)
    expect(new RequestContext(undefined, newId).requestId).toBe(`req-${newId()}`)
  })
})

describe("a request's times", () => {
  it("come in order, whichever of them are known, and the first of each counts", () =>
    fc.assert(
      fc.property(
        fc.array(fc.constantFrom("authenticated", "accepted", "firstUnit"), { maxLength: 9 }),
        (steps) => {
          const notes = new RequestContext(undefined, newId)
          for (const step of steps) step === "accepted" ? notes.accepted(notes.startedMs, "m") : notes[step]()
          const before = { ...notes }
          for (const step of new Set(steps)) {
            step === "accepted" ? notes.accepted(notes.startedMs - 1_000, "n") : notes[step]()
          }
          expect({ ...notes }).toEqual(before)
          const names = [
            ...(steps.includes("authenticated") ? ["auth"] : []),
            ...(steps.includes("accepted") ? ["queue"] : []),
            ...(steps.includes("firstUnit") ? ["first"] : []),
            "total",
          ]
          const entries = notes.serverTiming().split(", ")
          expect(entries.map((entry) => entry.split(";dur=")[0])).toEqual(names)
          for (const entry of entries) expect(entry).toMatch(/;dur=\d+(\.\d{1,2})?$/)
          const { total_ms, ...parts } = notes.timing()
          for (const part of Object.values(parts)) expect(part ?? 0).toBeLessThanOrEqual(total_ms!)
        },
      ),
    ))
})

describe("a request's receipt", () => {
  it.each([
    ["open", 200, "r"],
    ["open", 101, "r"],
    ["open", 404, undefined],
    ["settled", 200, "r"],
    // Something was delivered before it failed, and it is charged.
    ["settled", 500, "r"],
    ["cancelled", 200, undefined],
    ["cancelled", 500, undefined],
  ] as const)("that is %s goes with a %i as %s", (state, status, told) => {
    const notes = new RequestContext(undefined, newId)
    expect(notes.receiptIdFor(status)).toBeUndefined()
    const receipt: Receipt = { receiptId: "r", state }
    notes.reserved(receipt)
    notes.reserved({ receiptId: "another", state: "open" })
    expect(notes.receiptIdFor(status)).toBe(told)
  })
})
