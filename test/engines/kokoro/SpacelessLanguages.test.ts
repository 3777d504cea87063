// Chinese and Japanese of Kokoro's voices, from a text to the symbols of its pieces: mixed scripts and any text whatever.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { type EnglishPhonemes, loadEnglish } from "#engines/kokoro/Espeak.ts"
import { loadJapanese } from "#engines/kokoro/Japanese.ts"
import { loadMandarin } from "#engines/kokoro/Mandarin.ts"
import { spacelessFragments } from "#engines/kokoro/OtherLanguages.ts"
import { PieceReader } from "#engines/shared/speech/Pieces.ts"
import { loadSymbols } from "#engines/shared/speech/Symbols.ts"
import { runs } from "../../support/groups/Runs.ts"
import { sentencesIn } from "./languageSentences.ts"
import { demoFiles } from "./speech.ts"

const english = (await Effect.runPromise(loadEnglish))!
const readers = {
  ja: (await Effect.runPromise(loadJapanese))!,
  zh: (await Effect.runPromise(loadMandarin))!,
}
const symbols = await Effect.runPromise(loadSymbols(demoFiles.tokenizer))
type Language = keyof typeof readers
const languages = Object.keys(readers) as ReadonlyArray<Language>

const fragments = (text: string, language: Language, latin: EnglishPhonemes | undefined) =>
  spacelessFragments(text, language, readers[language], latin)

const symbolsOf = async (text: string, language: Language, latin?: EnglishPhonemes) => {
  let all = ""
  for await (const { phonemes } of fragments(text, language, latin)) all += phonemes
  return all.replace(/\s+/g, " ").trim()
}

/** Symbols of all pieces that a graph would get. */
const spokenSymbols = async (text: string, language: Language): Promise<string> => {
  const reader = new PieceReader(fragments(text, language, english), symbols, { maxSymbols: 200 })
  let all = ""
  for (;;) {
    const piece = await Effect.runPromise(reader.next)
    if (piece === undefined) return all
    all += piece.phonemes
  }
}

describe("a text", () => {
  it.each([
    ["zh", "你好，世界！", "ni↓xau↓, ʂɨ↘ʨje↘!"],
    ["zh", "他说：“再见。”", "tʰa→ ʂwo→: “ʦai↘ʨjɛ↘n.”"],
    ["zh", "25%", "pai↓fə→n ꭧɨ→ɚ↘ ʂɨ↗u↓"],
    ["zh", "我用iPhone。", "wo↓ jʊ↘ŋ ˈaɪ fˈoʊn."],
    ["ja", "こんにちは、世界！", "koɲɲiʨiβa, sekai!"],
    ["ja", "25歳です。", "ɲiʥɨːɡosai desɨ."],
    // Particles as they are spoken, long vowels, a stop at the end of a word.
    ["ja", "私は東京へ行って本を読む。", "βataɕi βa toːkʲoː e iʔte hoɴ o jomɯ."],
    ["ja", "先生が映画の手入れで稼いだ。", "seɴseː ɡa eːɡa no teiɾe de kasei da."],
    ["ja", "Tシャツとコーヒー", "tˈiː ɕaʦɨ to koːçiː"],
    ["ja", "ｶﾞｯｺｳは「3階」です", "ɡaʔkoɯ βa “saŋɡai” desɨ"],
  ] as const)("in %s: %s", async (language, text, expected) => {
    expect(await symbolsOf(text, language, english)).toBe(expected)
  })

  it("keeps Latin letters as symbols where English cannot be read", async () => {
    expect(await symbolsOf("我用Gmail。", "zh")).toBe("wo↓ jʊ↘ŋ ɡmail.")
  })

  it.each(languages)("of %s has symbols of the model only, and every sentence a word", async (language) => {
    const sentences = sentencesIn(language)
    expect(new Set(sentences).size).toBe(200)
    for (const sentence of sentences) {
      const found = await symbolsOf(sentence, language, english)
      expect([...found].filter((symbol) => !symbols.has(symbol))).toEqual([])
      expect(found).toMatch(/\p{L}{2}.*\.$/u)
    }
  })

  it.each(languages)("that has nothing to read in %s has no piece", async (language) => {
    for (const text of ["", "😀🎉", "한국어", "привет", "\u200f\u202e", "…。", "\u0301"])
      expect([text, await spokenSymbols(text, language)]).toEqual([text, ""])
  })
})

const anyText = fc.oneof(
  fc.string({ unit: "binary", minLength: 1, maxLength: 60 }),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }),
  // Mixed scripts, foreign digits, marks of direction, pictures, rare characters.
  fc.string({
    unit: fc.constantFrom(
      ..."aeñ ٣२𝟛漢字𠀀㐀かーっガｶﾞбש〇々\u200f\u202e\u2066😀👩‍🚀½％￥℃，。「」-.,!\u0301\u3099",
    ),
    minLength: 1,
    maxLength: 60,
  }),
)

describe("any text", () => {
  it.each(languages)("with a letter of %s, an English word or a digit is spoken", async (language) => {
    const own = language === "zh" ? "字" : "か"
    await fc.assert(
      fc.asyncProperty(anyText, fc.constantFrom(own, "٣", "word"), async (text, more) => {
        expect(await spokenSymbols(`${text} ${more}`, language)).toMatch(/\p{L}/u)
      }),
      { numRuns: runs(20, 300) },
    )
  })

  it.each([
    ["zh", "字", "ʦɨ↘"],
    ["ja", "ま", "ma"],
    ["zh", "ま", "ma"],
  ] as const)(
    "of 4,096 characters without a space is spoken to its end in %s: %s",
    async (language, letter, sound) => {
      const all = await spokenSymbols(letter.repeat(4096), language)
      expect(all.split(sound)).toHaveLength(4097)
    },
  )
})
