import * as fc from "fast-check"
import { describe, expect, it } from "vitest"
import { endsPiece } from "#engines/transducer/decoding/PieceEnd.ts"

const seconds = fc.double({ min: 0, max: 130, noNaN: true })
const most = fc.double({ min: 8, max: 120, noNaN: true })

describe("the end of a piece", () => {
  it("comes at the latest after the longest piece, and never in its first part", () => {
    fc.assert(
      fc.property(seconds, seconds, most, (at, pause, longest) => {
        if (at >= longest) expect(endsPiece(at, pause, longest)).toBe(true)
        if (at < 0.4 * longest) expect(endsPiece(at, pause, longest)).toBe(false)
      }),
    )
  })

  it("needs no longer pause later, and comes with any longer pause", () => {
    fc.assert(
      fc.property(seconds, seconds, seconds, most, (at, pause, more, longest) => {
        if (!endsPiece(at, pause, longest)) return
        expect(endsPiece(at + more, pause, longest)).toBe(true)
        expect(endsPiece(at, pause + more, longest)).toBe(true)
      }),
    )
  })

  it("needs 0.8 s at first", () => {
    expect(endsPiece(12, 0.79, 30)).toBe(false)
    expect(endsPiece(12, 0.8, 30)).toBe(true)
    expect(endsPiece(21, 0.39, 30)).toBe(false)
    expect(endsPiece(21, 0.4, 30)).toBe(true)
  })
})
