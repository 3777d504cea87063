// A reply from its tokens: whole characters in every delta, wherever token borders, a stop sequence or the
// token limit cut it.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { Completion } from "#engines/llama/output/Completion.ts"
import { type Piece, Vocabulary } from "#engines/llama/output/Vocabulary.ts"

const characters = [
  "你",
  "好",
  "か",
  "한",
  "λ",
  "ش",
  "é",
  "a",
  "7",
  " ",
  "👍",
  "😁",
  "😂",
  "👩‍👩‍👧‍👦",
  "🏳️‍🌈",
  "e\u0301",
]
const said = fc.array(fc.constantFrom(...characters), { maxLength: 30 }).map((list) => list.join(""))
const sizes = fc.array(fc.integer({ min: 1, max: 5 }), { maxLength: 60 })
/** Byte-fallback spelling, one piece a byte; attribute 32 is a byte token. */
const vocabulary = new Vocabulary({
  size: 257,
  spelling: "spaced",
  spelled: (token) => `<0x${token.toString(16).toUpperCase().padStart(2, "0")}>`,
  attributes: () => 32,
  isEnd: (token) => token === 256,
  shown: new Set(),
})

const strict = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true })

/** The text's bytes in tokens of these sizes. */
const tokensOf = (text: string, cut: ReadonlyArray<number>): ReadonlyArray<Piece> => {
  const bytes = Buffer.from(text)
  const tokens: Array<Piece> = []
  for (let at = 0, i = 0; at < bytes.length; at += cut[i++] ?? 1) {
    const part = Uint8Array.from(bytes.subarray(at, at + (cut[i] ?? 1)))
    let whole: string | undefined
    try {
      whole = strict.decode(part)
    } catch {
      whole = undefined
    }
    tokens.push({ bytes: part, text: whole, end: false })
  }
  return tokens
}

const deltasOf = (pieces: ReadonlyArray<Piece>, stop: ReadonlyArray<string>, maxTokens: number) => {
  const completion = new Completion({ stop, maxTokens, thought: undefined })
  const deltas: Array<string> = []
  for (const piece of [...pieces, vocabulary.piece(256)]) {
    const { text, finish } = completion.accept(piece)
    deltas.push(text)
    if (finish !== undefined) return { deltas, finish }
  }
  return { deltas, finish: undefined }
}

const whole = (deltas: ReadonlyArray<string>) => {
  for (const delta of deltas) {
    expect(delta).not.toContain("\ufffd")
    expect(delta.isWellFormed()).toBe(true)
  }
}

it("any cut into tokens gives the text", () => {
  fc.assert(
    fc.property(said, sizes, (text, cut) => {
      const { deltas, finish } = deltasOf(tokensOf(text, cut), [], 1_000)
      whole(deltas)
      expect({ text: deltas.join(""), finish }).toEqual({ text, finish: "stop" })
    }),
  )
})

it("a limit inside a character drops that character", () => {
  fc.assert(
    fc.property(said, sizes, fc.integer({ min: 1, max: 30 }), (text, cut, maxTokens) => {
      const { deltas, finish } = deltasOf(tokensOf(text, cut), [], maxTokens)
      whole(deltas)
      expect(text.startsWith(deltas.join(""))).toBe(true)
      if (finish === "stop") expect(deltas.join("")).toBe(text)
    }),
  )
})

it("a stop sequence never cuts a character, half of a surrogate pair least of all", () => {
  const stops = fc.array(fc.constantFrom("😂", "\ud83d", "\ude01", "👩", "好か", "\u200d", "e"), {
    maxLength: 4,
  })
  fc.assert(
    fc.property(said, sizes, stops, fc.integer({ min: 1, max: 60 }), (text, cut, stop, maxTokens) => {
      const { deltas } = deltasOf(tokensOf(text, cut), stop, maxTokens)
      whole(deltas)
      expect(text.startsWith(deltas.join(""))).toBe(true)
      for (const one of stop) if (one.isWellFormed()) expect(deltas.join("")).not.toContain(one)
    }),
  )
})

it("arbitrary bytes: the characters among them and nothing else", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(255), { maxLength: 60 }), (bytes) => {
      const { deltas } = deltasOf(
        bytes.map((byte) => vocabulary.piece(byte)),
        [],
        1_000,
      )
      whole(deltas)
      expect(deltas.join("")).toBe(Buffer.from(bytes).toString("utf8").replaceAll("\ufffd", ""))
    }),
  )
})
