// Incomplete characters are held back; in any cut, the text is that of the whole bytes, without U+FFFD.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { incompleteTail, Utf8Holdback } from "#engines/shared/text/Utf8Holdback.ts"

const cut = (bytes: Uint8Array, sizes: ReadonlyArray<number>): ReadonlyArray<Uint8Array> => {
  const parts: Array<Uint8Array> = []
  let at = 0
  for (const size of sizes) {
    parts.push(bytes.subarray(at, at + size))
    at += size
  }
  return [...parts, bytes.subarray(at)]
}

const sizes = fc.array(fc.nat(5), { maxLength: 40 })
/** Bytes with many beginnings and ends of characters, most of them in the wrong place. */
const wildByte = fc.oneof(
  fc.constantFrom(
    0xc2,
    0xdf,
    0xe0,
    0xe2,
    0xed,
    0xef,
    0xf0,
    0xf4,
    0xf5,
    0xc0,
    0xff,
    0x80,
    0x9f,
    0xa0,
    0xbf,
    0x41,
  ),
  fc.nat(255),
)

it("any cut of any text gives the text", () => {
  fc.assert(
    fc.property(fc.string({ unit: "grapheme" }), sizes, (text, at) => {
      const holdback = new Utf8Holdback()
      const parts = cut(new TextEncoder().encode(text), at).map((part) => holdback.push(part))
      expect(parts.join("")).toBe(text.replaceAll("\ufffd", ""))
      expect(holdback.empty).toBe(true)
    }),
  )
})

it("any cut of any bytes gives the characters among them, and never U+FFFD", () => {
  fc.assert(
    fc.property(fc.array(wildByte, { maxLength: 40 }), sizes, (list, at) => {
      const bytes = Uint8Array.from(list)
      const holdback = new Utf8Holdback()
      const text = cut(bytes, at)
        .map((part) => holdback.push(part))
        .join("")
      const whole = new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes)
      expect(text).toBe(whole.replaceAll("\ufffd", ""))
    }),
    { numRuns: 1000 },
  )
})

it("releases each character with its last byte", () => {
  const holdback = new Utf8Holdback()
  const [a, b, c, d] = [...new TextEncoder().encode("😀")].map((byte) => Uint8Array.of(byte))
  expect([a!, b!, c!, d!].map((byte) => holdback.push(byte))).toEqual(["", "", "", "😀"])
  expect(holdback.empty).toBe(true)
})

it("an end in the middle of a character drops what there is of it", () => {
  const holdback = new Utf8Holdback()
  expect(holdback.push(Uint8Array.of(0x61, 0xe2, 0x82))).toBe("a")
  expect(holdback.empty).toBe(false)
  holdback.end()
  expect(holdback.empty).toBe(true)
  expect(holdback.push(Uint8Array.of(0xac, 0x62))).toBe("b")
})

it("begins inside a character", () => {
  expect(new Utf8Holdback(Uint8Array.of(0xe2, 0x82)).push(Uint8Array.of(0xac, 0x62))).toBe("€b")
  expect(new Utf8Holdback(Uint8Array.of(0xe2, 0x82)).push(Uint8Array.of(0x62))).toBe("b")
})

it("drops a replacement character that the bytes spell", () => {
  const holdback = new Utf8Holdback()
  const parts = [Uint8Array.of(0x61, 0xef), Uint8Array.of(0xbf, 0xbd, 0x62)].map((part) =>
    holdback.push(part),
  )
  expect(parts).toEqual(["a", "b"])
})

it("holds nothing that cannot become a character", () => {
  expect(incompleteTail(Uint8Array.of(0xed, 0xa0))).toBe(0) // a surrogate
  expect(incompleteTail(Uint8Array.of(0xf4, 0x90))).toBe(0) // beyond U+10FFFF
  expect(incompleteTail(Uint8Array.of(0xc1))).toBe(0) // overlong
  expect(incompleteTail(Uint8Array.of(0xf0, 0x9f, 0x98))).toBe(3)
})
