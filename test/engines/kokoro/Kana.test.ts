// Kana in the published symbols.
import { describe, expect, it } from "vitest"
import { kanaSymbols } from "#engines/kokoro/Kana.ts"

describe("kana", () => {
  it.each([
    ["こんにちは", "koɲɲiʨiha"],
    ["トーキョー", "toːkʲoː"],
    ["サンポ", "sampo"],
    ["リンゴ", "ɾʲiŋɡo"],
    ["センタク", "sentakɯ"],
    ["センシュ", "seɴɕɨ"],
    ["ホン", "hoɴ"],
    ["ガッコー", "ɡaʔkoː"],
    ["シャシンヲ", "ɕaɕiɴo"],
    ["ファイル", "ɸaiɾɯ"],
    ["ヴァイオリン", "vaioɾʲiɴ"],
    ["ティー", "tʲiː"],
    ["ヂャ", "ʥa"],
    ["ザズゾ", "ʣazɨʣo"],
    // A pair that has no entry, a pair across "ッ", a lone small letter, the small letters of Ainu.
    ["フャ", "ɸja"],
    ["ッャ", "ʔja"],
    ["ァ", "a"],
    ["ㇰ", "kɯ"],
    ["漢字 abc", ""],
    ["", ""],
  ])("%s is %s", (kana, symbols) => {
    expect(kanaSymbols(kana)).toBe(symbols)
  })

  it("all have a sound", () => {
    for (let code = 0x3041; code <= 0x3096; code++) {
      const one = String.fromCodePoint(code)
      expect([one, kanaSymbols(one)]).toEqual([one, expect.stringMatching(/\S/)])
      // Katakana are 0x60 behind.
      const other = String.fromCodePoint(code + 0x60)
      expect([other, kanaSymbols(other)]).toEqual([other, kanaSymbols(one)])
    }
    for (const one of "ヷヸヹヺㇰㇿ") expect(kanaSymbols(one)).toMatch(/\S/)
  })
})
