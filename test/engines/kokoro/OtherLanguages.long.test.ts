// Kokoro's five languages that eSpeak reads: their symbols against the published mapping, and any text whatever.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { loadEspeak } from "#engines/kokoro/EspeakLanguages.ts"
import { espeakFragments, espeakVoices, rewriteSounds } from "#engines/kokoro/OtherLanguages.ts"
import { PieceReader } from "#engines/shared/speech/Pieces.ts"
import { loadSymbols } from "#engines/shared/speech/Symbols.ts"
import { onlyWhere } from "../../support/groups/Needs.ts"
import { sentencesIn } from "./languageSentences.ts"
import { demoFiles } from "./speech.ts"

const espeak = (await Effect.runPromise(loadEspeak))!
const withEspeak = onlyWhere(
  espeak !== undefined,
  "no eSpeak NG found; npm package @echogarden/espeak-ng-emscripten",
)
/** The published symbol table. */
const symbols = await Effect.runPromise(loadSymbols(demoFiles.tokenizer))
const languages = Object.keys(espeakVoices)

const symbolsOf = async (text: string, language: string): Promise<string> => {
  let all = ""
  for await (const { phonemes } of espeakFragments(text, language, espeak)) all += phonemes
  return all.trim()
}

/** Symbols of all pieces that a graph would get. */
const spokenSymbols = async (text: string, language: string): Promise<string> => {
  const reader = new PieceReader(espeakFragments(text, language, espeak), symbols, { maxSymbols: 200 })
  let all = ""
  for (;;) {
    const piece = await Effect.runPromise(reader.next)
    if (piece === undefined) return all
    all += piece.phonemes
  }
}

/**
 * The published mapping, written from its description: eSpeak joins the letters of one sound by "^" (not before modifiers and diacritics), and
 * pairs so joined are replaced in the whole text.
 */
const published: ReadonlyArray<readonly [string, string]> = [
  ["a^ɪ", "I"],
  ["a^ʊ", "W"],
  ["d^z", "ʣ"],
  ["d^ʒ", "ʤ"],
  ["e^ɪ", "A"],
  ["o^ʊ", "O"],
  ["s^s", "S"],
  ["t^s", "ʦ"],
  ["t^ʃ", "ʧ"],
  ["ə^ʊ", "Q"],
  ["ɔ^ɪ", "Y"],
]
const isLetter = (symbol: string): boolean => /(?![\u02b0-\u036f])\p{L}/u.test(symbol)
const publishedSymbols = (sentence: string, voice: string): string => {
  let tied = ""
  let inSound = false
  for (const symbol of espeak.sounds(sentence.replace(/\.$/, ""), voice)) {
    if (inSound && isLetter(symbol)) tied += "^"
    if (symbol !== "_") tied += symbol
    inSound = symbol !== "_" && symbol !== " " && (inSound || isLetter(symbol))
  }
  for (const [from, to] of published) tied = tied.replaceAll(from, to)
  return `${tied.replaceAll("^", "").replaceAll("-", "")}.`
}

describe("symbols", () => {
  it("of one sound are joined, of two are not", () => {
    expect(rewriteSounds("tʃ_ˈaʊ")).toBe("ʧˈW")
    expect(rewriteSounds("t_ʃ a_ɪ")).toBe("tʃ aɪ")
    expect(rewriteSounds("p_ˈi_tsː_a e-_z")).toBe("pˈiʦːa ez")
  })

  it.each(languages)("of %s are the published ones, and all of the table", withEspeak, async (language) => {
    const sentences = sentencesIn(language)
    expect(new Set(sentences).size).toBe(200)
    for (const sentence of sentences) {
      const found = await symbolsOf(sentence, language)
      expect(found).toBe(publishedSymbols(sentence, espeakVoices[language]!))
      expect([...found].filter((symbol) => !symbols.has(symbol))).toEqual([])
    }
  })

  it.each([
    ["es", "Hola, ¿qué tal? «Bien» (dijo).", "ˈola, kˈe tˈal? “bjˈen” (dˈixo)."],
    ["fr", "Ça coûte 3,50 €.", "sa kˈut tʁwˈaz øʁˈoz e sɛ̃kˈɑ̃t sɑ̃tˈim."],
    ["hi", "बड़ी गाड़ी।", "bˈʌr.i ɡˈaːr.i."],
    ["it", "Pizza e ciao!", "pˈiʦːa e ʧˈao!"],
    ["pt", "Não, são 10:30.", "nˈɐ̃ʊ̃, sɐ̃ʊ̃ dˈɛz ˈɔɾæz i trˈiŋtæ."],
  ])("of %s: %s", withEspeak, async (language, text, expected) => {
    expect((await symbolsOf(text, language)).normalize("NFC")).toBe(expected.normalize("NFC"))
  })

  it("of a sound with a full stop are in one piece", withEspeak, async () => {
    expect(await spokenSymbols("बड़ी गाड़ी सड़क पर है।", "hi")).toContain("bˈʌr.i ɡˈaːr.i sˈʌr.ək")
  })
})

const anyText = fc.oneof(
  fc.string({ unit: "binary", minLength: 1, maxLength: 60 }),
  fc.string({ unit: "grapheme", minLength: 1, maxLength: 60 }),
  // Mixed scripts, foreign digits, marks of direction, pictures.
  fc.string({
    unit: fc.constantFrom(..."aeñç ß٣२𝟛漢かбωש\u200f\u202e\u2066😀🇪🇸👩‍🚀½º€₹-.,!\u0301\u064b"),
    minLength: 1,
    maxLength: 60,
  }),
)

describe("any text", () => {
  it.each(languages)("with a letter of %s or a digit is spoken", withEspeak, async (language) => {
    const own = language === "hi" ? "क" : "a"
    await fc.assert(
      fc.asyncProperty(anyText, fc.boolean(), async (text, isDigit) => {
        const spoken = await spokenSymbols(`${text} ${isDigit ? "٣" : own}`, language)
        expect(spoken).toMatch(/\p{L}/u)
      }),
      { numRuns: 300 },
    )
  })

  it.each(languages)(
    "of 4,096 characters without a space is spoken to its end in %s",
    withEspeak,
    async (language) => {
      const letter = language === "hi" ? "म" : "ma"
      const text = letter.repeat(4096).slice(0, 4096)
      const all = await spokenSymbols(text, language)
      const part = await spokenSymbols(text.slice(0, 40), language)
      expect([...all].length).toBeGreaterThan([...part].length * 60)
    },
  )
})
