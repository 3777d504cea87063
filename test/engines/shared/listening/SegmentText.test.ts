// For any tokens, segments and windows: the texts add up to what was decoded, in whole characters.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { heldTokens, SegmentTexts } from "#engines/shared/listening/SegmentText.ts"
import { type BytesOf, bytesOfTokens } from "#engines/shared/listening/TokenText.ts"

/** GPT-2's spelling of a byte. */
const spelledByte: ReadonlyArray<string> = (() => {
  let next = 0x100
  return Array.from({ length: 256 }, (_, byte) => {
    const printable = (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae
    return String.fromCodePoint(printable ? byte : next++)
  })
})()

const byteLevel = (tokens: ReadonlyArray<Uint8Array>): BytesOf =>
  bytesOfTokens({
    added_tokens: [],
    decoder: { type: "ByteLevel" },
    model: {
      vocab: Object.fromEntries(
        tokens.map((bytes, id) => [`${Array.from(bytes, (byte) => spelledByte[byte]).join("")}`, id]),
      ),
    },
  })

/** SentencePiece: characters with tokens of their own, and bytes. */
const fallback: { readonly bytesOf: BytesOf; readonly spell: (text: string, own: boolean) => Array<number> } =
  (() => {
    const bytes = Array.from(
      { length: 256 },
      (_, byte) => `<0x${byte.toString(16).toUpperCase().padStart(2, "0")}>`,
    )
    const vocabulary = [...bytes, "▁", "a", "你", "λ", "\ufffd"]
    const bytesOf = bytesOfTokens({
      decoder: {
        type: "Sequence",
        decoders: [{ type: "Replace" }, { type: "ByteFallback" }, { type: "Fuse" }],
      },
      model: { vocab: vocabulary.map((spelled) => [spelled, 0]) },
    })
    const spell = (text: string, own: boolean) =>
      Array.from(text).flatMap((character) => {
        const id = vocabulary.indexOf(character === " " ? "▁" : character)
        return own && id >= 0 ? [id] : [...Buffer.from(character)]
      })
    return { bytesOf, spell }
  })()

const character = fc.oneof(
  fc.constantFrom(
    "你",
    "好",
    "世",
    "界",
    "か",
    "ㅎ",
    "한",
    "λ",
    "ό",
    "ش",
    "لا",
    "é",
    "a",
    "Z",
    "7",
    "。",
    "؟",
  ),
  fc.constantFrom("👍", "👩‍👩‍👧‍👦", "🏳️‍🌈", "👋🏽", "❤️", "e\u0301", " "),
  // "▁" stands for a space in such vocabularies.
  fc
    .string({ unit: "grapheme", minLength: 1, maxLength: 1 })
    .filter((one) => !/[\ufffd\s▁]/u.test(one)),
)
const said = fc.array(character, { maxLength: 40 }).map((list) => list.join(""))
const cuts = fc.array(fc.nat(4), { maxLength: 80 })

const cutInto = <T>(
  list: ReadonlyArray<T>,
  sizes: ReadonlyArray<number>,
): ReadonlyArray<ReadonlyArray<T>> => {
  const parts: Array<ReadonlyArray<T>> = []
  let at = 0
  for (const size of sizes) {
    parts.push(list.slice(at, at + size))
    at += size
  }
  return [...parts, list.slice(at)]
}

const withoutSpaces = (text: string) => text.replaceAll(/\s/gu, "")

/** Windows of segments of tokens → the texts of all segments, as an engine makes them. */
const textsOf = (
  bytesOf: BytesOf,
  windows: ReadonlyArray<ReadonlyArray<ReadonlyArray<number>>>,
  language = "zh",
) => {
  const texts: Array<string> = []
  let previousTokens: ReadonlyArray<number> = []
  for (const segments of windows) {
    const window = new SegmentTexts(bytesOf, language, previousTokens)
    for (const tokens of segments) texts.push(window.next(tokens))
    previousTokens = [...previousTokens, ...segments.flat()].slice(-5)
  }
  return texts
}

const whole = (texts: ReadonlyArray<string>) => {
  for (const text of texts) {
    expect(text).not.toContain("\ufffd")
    expect(text.isWellFormed()).toBe(true)
  }
}

describe("texts of segments", () => {
  it("byte-level tokens cut anywhere, segments cut anywhere", () => {
    fc.assert(
      fc.property(said, cuts, cuts, (text, tokenSizes, segmentSizes) => {
        const tokens = cutInto([...Buffer.from(text)], tokenSizes).filter(({ length }) => length > 0)
        const bytesOf = byteLevel(tokens.map((bytes) => Uint8Array.from(bytes)))
        // Equal tokens share the last id, as in a vocabulary.
        const segments = cutInto([...tokens.keys()], segmentSizes).map((ids) =>
          ids.map((id) => tokens.findLastIndex((other) => String(other) === String(tokens[id]))),
        )
        const texts = textsOf(bytesOf, [segments])
        whole(texts)
        expect(texts.join("").trim()).toBe(text.trim())
      }),
    )
  })

  it("windows may begin inside a character", () => {
    fc.assert(
      fc.property(said, fc.boolean(), cuts, cuts, (text, own, segmentSizes, windowSizes) => {
        const segments = cutInto(fallback.spell(text, own), segmentSizes)
        const texts = textsOf(fallback.bytesOf, cutInto(segments, windowSizes))
        whole(texts)
        expect(withoutSpaces(texts.join(""))).toBe(withoutSpaces(text))
      }),
    )
  })

  it("bytes that are no character are dropped, and nothing else", () => {
    const wrong = fc.constantFrom(
      [0xff],
      [0x80, 0xbf],
      [0xc0, 0x80],
      [0xed, 0xa0, 0x80],
      [0xf5],
      [260],
      [0xef, 0xbf, 0xbd],
    )
    fc.assert(
      fc.property(fc.array(fc.tuple(character, fc.option(wrong))), cuts, (list, segmentSizes) => {
        const tokens = list.flatMap(([one, bad]) => [...fallback.spell(one, false), ...(bad ?? [])])
        const texts = textsOf(fallback.bytesOf, [cutInto(tokens, segmentSizes)])
        whole(texts)
        expect(withoutSpaces(texts.join(""))).toBe(withoutSpaces(list.map(([one]) => one).join("")))
      }),
    )
  })

  it("the beginning of a character at the end is dropped", () => {
    fc.assert(
      fc.property(said, fc.constantFrom("你", "👍", "é"), fc.nat(2), (text, last, length) => {
        const part = [...Buffer.from(last)].slice(0, Math.min(length, Buffer.byteLength(last) - 1))
        const texts = textsOf(fallback.bytesOf, [[[...fallback.spell(text, true), ...part]]])
        whole(texts)
        expect(texts.join("").trim()).toBe(text.trim())
      }),
    )
  })

  it("segments join without anything between them", () => {
    const ids = (text: string) => fallback.spell(text, true)
    expect(textsOf(fallback.bytesOf, [[ids("Hello."), ids(" and")]], "en")).toEqual([" Hello.", " and"])
    expect(textsOf(fallback.bytesOf, [[ids(" Hello.")], [ids("And")]], "en")).toEqual([" Hello.", " And"])
    expect(textsOf(fallback.bytesOf, [[ids("你好。")]], "zh")).toEqual(["你好。"])
    // A blank segment is dropped, and its space is kept.
    expect(textsOf(fallback.bytesOf, [[ids("a"), ids(" "), ids("b")]], "en")).toEqual([" a", "", " b"])
    // A window that goes on inside a character goes on inside a word.
    const [a, b, c] = [...Buffer.from("你")] as [number, number, number]
    expect(textsOf(fallback.bytesOf, [[[a]], [[b], [c, ...ids("a")]]], "en")).toEqual(["", "", "你a"])
    expect(textsOf(fallback.bytesOf, [[[a]], [ids("a")]], "en")).toEqual(["", " a"])
    // One that ends inside a character is not, even where its own first segment had no text.
    expect(textsOf(fallback.bytesOf, [[[a], [b, c]]], "en")).toEqual(["", " 你"])
  })

  it("keeps the tokens of a character that is not whole, and no others", () => {
    const { bytesOf, spell } = fallback
    expect(heldTokens(bytesOf, spell("a你", false))).toEqual([])
    expect(heldTokens(bytesOf, spell("a你", false).slice(0, -1))).toEqual([0x61, 0xe4, 0xbd])
    expect(heldTokens(bytesOf, [])).toEqual([])
  })
})

describe("bytes of tokens", () => {
  it("special tokens are no text, others that were added are", () => {
    const bytesOf = bytesOfTokens({
      added_tokens: [
        { id: 1, content: "<|end|>", special: true },
        { id: 2, content: "héé", special: false },
      ],
      decoder: { type: "Metaspace" },
      model: { vocab: { "▁a": 0 } },
    })
    expect(Buffer.from(bytesOf([0, 1, 2, 99])).toString()).toBe(" ahéé")
  })

  it("refuses a decoder that it does not know", () => {
    for (const decoder of [{ type: "WordPiece" }, { type: "Sequence", decoders: [] }, null]) {
      expect(() => bytesOfTokens({ decoder, model: { vocab: {} } })).toThrow(
        /^a decoder of type .* is not supported$/,
      )
    }
  })
})
