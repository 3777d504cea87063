// Which word each symbol belongs to: one group of symbols a word, joined words, and words that were divided.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { wordOfSymbols } from "#engines/shared/speech/WordSymbols.ts"

const byWord = (phonemes: string, words: string): ReadonlyArray<string> => {
  const of = wordOfSymbols({ phonemes, words })
  const parts = words.split(" ").map(() => "")
  for (const [at, symbol] of [...phonemes].entries()) if (of[at]! >= 0) parts[of[at]!] += symbol
  return parts
}

describe("symbols of words", () => {
  it.each([
    ["wˈʌn ʌv ðə dˈɔɡz", "One of the dogs", ["wˈʌn", "ʌv", "ðə", "dˈɔɡz"]],
    ["wˈʌn ʌvðə dˈɔɡz", "One of the dogs", ["wˈʌn", "ʌv", "ðə", "dˈɔɡz"]],
    ["ɪnðɪ ˈɛnd", "in the end", ["ɪn", "ðɪ", "ˈɛnd"]],
    ["wɛl nˈoʊn fˈækt", "well-known fact", ["wɛlnˈoʊn", "fˈækt"]],
    ["aɪ hæv bˌɪn ðˈɛɹ tədˈeɪ", "I have been there today", ["aɪ", "hæv", "bˌɪn", "ðˈɛɹ", "tədˈeɪ"]],
    ["aɪhæv bˌɪn ðˈɛɹ tədˈeɪ", "I have been there today", ["aɪ", "hæv", "bˌɪn", "ðˈɛɹ", "tədˈeɪ"]],
  ])("%s", (phonemes, words, expected) => {
    expect(byWord(phonemes, words)).toEqual(expected)
  })

  it("ascend, and leave out white space alone", () => {
    fc.assert(
      fc.property(
        fc.string({ unit: fc.constantFrom(..."abkɹθðəˈː "), maxLength: 30 }),
        fc.array(fc.stringMatching(/^[a-z'-]{1,8}$/), { minLength: 1, maxLength: 8 }),
        (phonemes, words) => {
          let last = 0
          for (const [at, word] of wordOfSymbols({ phonemes, words: words.join(" ") }).entries()) {
            if ([...phonemes][at] === " ") expect(word).toBe(-1)
            else {
              expect(word).toBeGreaterThanOrEqual(last)
              expect(word).toBeLessThan(words.length)
              last = word
            }
          }
        },
      ),
    )
  })
})
