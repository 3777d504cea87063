// Chinese characters in the published symbols of Kokoro v1.0.
import { describe, expect, it } from "@effect/vitest"
import { Effect } from "effect"
import fc from "fast-check"
import { loadMandarin, syllableSymbols } from "#engines/kokoro/Mandarin.ts"
import { loadSymbols } from "#engines/shared/speech/Symbols.ts"
import { demoFiles } from "./speech.ts"

const symbols = await Effect.runPromise(loadSymbols(demoFiles.tokenizer))
const mandarin = (await Effect.runPromise(loadMandarin))!

/** Every syllable of Standard Chinese, by final: the initials it is spelled with. */
const syllables = [
  "a: b p m f d t n l g k h zh ch sh z c s -",
  "ai: b p m d t n l g k h zh ch sh z c s -",
  "an: b p m f d t n l g k h zh ch sh r z c s -",
  "ang: b p m f d t n l g k h zh ch sh r z c s -",
  "ao: b p m d t n l g k h zh ch sh r z c s -",
  "e: m d t n l g k h zh ch sh r z c s -",
  "ei: b p m f d n l g h zh sh z -",
  "en: b p m f n g k h zh ch sh r z c s -",
  "eng: b p m f d t n l g k h zh ch sh r z c s -",
  "i: b p m d t n l j q x zh ch sh r z c s y",
  "ia: d l j q x",
  "ian: b p m d t n l j q x",
  "iang: n l j q x",
  "iao: b p m d t n l j q x",
  "ie: b p m d t n l j q x",
  "in: b p m n l j q x y",
  "ing: b p m d t n l j q x y",
  "iong: j q x",
  "iu: m d n l j q x",
  "o: b p m f w y -",
  "ong: d t n l g k h zh ch r z c s y",
  "ou: p m f d t l g k h zh ch sh r z c s y -",
  "u: b p m f d t n l g k h zh ch sh r z c s j q x w y",
  "ua: g k h zh ch sh r",
  "uai: g k h zh ch sh",
  "uan: d t n l g k h zh ch sh r z c s j q x y",
  "uang: g k h zh ch sh",
  "ue: j q x y",
  "ui: d t g k h zh ch sh r z c s",
  "un: d t n l g k h zh ch sh r z c s j q x y",
  "uo: d t n l g k h zh ch sh r z c s",
  "ve: n l",
  "v: n l",
  "ya yan yang yao ye wa wai wan wang wei wen weng: -",
].flatMap((row) => {
  const [finals = "", starts = ""] = row.split(": ")
  return finals
    .split(" ")
    .flatMap((final) => starts.split(" ").map((initial) => `${initial === "-" ? "" : initial}${final}`))
})

describe("syllables", () => {
  it.each([
    ["zhong1", "ꭧʊ→ŋ"],
    ["guo2", "kwo↗"],
    ["ni3", "ni↓"],
    ["hao3", "xau↓"],
    ["shi4", "ʂɨ↘"],
    ["zi5", "ʦɨ"],
    ["de0", "tɤ"],
    ["er2", "ɚ↗"],
    ["lv4", "ly↘"],
    ["lü4", "ly↘"],
    ["xue2", "ɕɥe↗"],
    ["juan3", "ʨɥɛ↓n"],
    ["yuan4", "ɥɛ↘n"],
    ["jun1", "ʨy→n"],
    ["yong3", "jʊ↓ŋ"],
    ["you3", "jou↓"],
    ["liu4", "ljou↘"],
    ["wei4", "wei↘"],
    ["dui4", "twei↘"],
    ["lun2", "lwə↗n"],
    ["weng1", "wə→ŋ"],
    ["bo1", "pwo→"],
    ["o4", "ɔ↘"],
    ["ri4", "ɻɨ↘"],
    ["qian2", "ʨʰjɛ↗n"],
    ["ng2", "ŋ↗"],
    ["xyz1", undefined],
    ["字", undefined],
    ["", undefined],
  ])("%s is %s", (pinyin, expected) => {
    expect(syllableSymbols(pinyin)).toBe(expected)
  })

  it("are all in the tables, with symbols that the model has, and each is one syllable", () => {
    expect(new Set(syllables).size).toBeGreaterThan(400)
    for (const syllable of syllables) {
      const found = syllableSymbols(`${syllable}4`)
      expect([syllable, found]).toEqual([syllable, expect.stringMatching(/^[^↘]*↘[nŋ]?$/)])
      expect([...found!].filter((symbol) => !symbols.has(symbol))).toEqual([])
    }
  })

  it("differ, but for those that are spelled alike", () => {
    const of = new Map<string, Array<string>>()
    for (const syllable of new Set(syllables)) {
      const found = syllableSymbols(`${syllable}1`)!
      of.set(found, [...(of.get(found) ?? []), syllable])
    }
    expect([...of.values()].filter((same) => same.length > 1)).toEqual([])
  })
})

describe("characters", () => {
  it.each([
    ["你好吗", "ni↓xau↓ ma"],
    ["中国银行", "ꭧʊ→ŋkwo↗ i↗nxa↗ŋ"],
    // One character, two readings.
    ["重庆很重要", "ꭧʰʊ↗ŋʨʰi↘ŋ xə↓n ꭧʊ↘ŋjau↘"],
    ["银行行长", "i↗nxa↗ŋ xa↗ŋꭧa↓ŋ"],
    // No tone changes by its neighbour, as published.
    ["一个", "i→kɤ↘"],
    ["不是", "pu↘ʂɨ↘"],
    // Rare and other characters.
    ["〇", "li↗ŋ"],
    ["カラオケ", "kaɾaoke"],
    ["한국", ""],
  ])("%s are %s", (text, expected) => {
    expect(mandarin(text).replace(/\s+/g, " ")).toBe(expected)
  })

  it("keep their readings behind any text", () => {
    fc.assert(
      fc.property(fc.string({ unit: "binary", maxLength: 40 }), (text) => {
        expect(mandarin(`${text} 字`)).toMatch(/(?:^| )ʦɨ↘$/)
      }),
    )
  })
})
