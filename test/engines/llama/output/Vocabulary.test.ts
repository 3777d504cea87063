// The bytes of a token, from its spelling.
import { expect, it } from "@effect/vitest"
import { tokenBytes, Vocabulary } from "#engines/llama/output/Vocabulary.ts"

const normal = 4
const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes)

it("byte-level spelling covers all 256 bytes once", () => {
  const spelled = Array.from({ length: 0x144 }, (_, code) => String.fromCodePoint(code))
  const single = spelled
    .map((one) => tokenBytes(one, normal, "byteLevel"))
    .filter(({ length }) => length === 1)
  expect(new Set(single.map(([byte]) => byte)).size).toBe(256)
  expect(text(tokenBytes("ĠHello", normal, "byteLevel"))).toBe(" Hello")
  expect(text(tokenBytes("Ċ", normal, "byteLevel"))).toBe("\n")
  expect([...tokenBytes("ðŁĺ", normal, "byteLevel")]).toEqual([0xf0, 0x9f, 0x98])
})

it("spaced spelling, byte tokens, user-defined and control tokens", () => {
  expect(text(tokenBytes("▁the", normal, "spaced"))).toBe(" the")
  expect([...tokenBytes("<0xE2>", 32, "spaced")]).toEqual([0xe2])
  expect(text(tokenBytes("<tool>", 16, "byteLevel"))).toBe("<tool>")
  expect(tokenBytes("<|im_end|>", 8, "byteLevel")).toHaveLength(0)
})

it("a piece has text when it is whole characters, and markers of thinking are shown", () => {
  const spelled = ["ĠHi", "ðŁ", "<think>", "<|im_end|>"]
  const vocabulary = new Vocabulary({
    size: 4,
    spelling: "byteLevel",
    spelled: (token) => spelled[token]!,
    attributes: (token) => (token < 2 ? normal : 8),
    isEnd: (token) => token === 3,
    shown: new Set(["<think>"]),
  })
  expect(vocabulary.piece(0)).toMatchObject({ text: " Hi", end: false })
  expect(vocabulary.piece(1).text).toBeUndefined()
  expect(vocabulary.piece(2).text).toBe("<think>")
  expect(vocabulary.piece(3)).toMatchObject({ text: "", end: true })
})
