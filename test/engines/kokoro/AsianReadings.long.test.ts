// Two hundred sentences each of Chinese and Japanese against readings of other origin: Unicode's table of Chinese characters, and the
// dictionary NAIST-jdic in MeCab. What differs is listed.
import { execFileSync } from "node:child_process"
import { existsSync } from "node:fs"
import { Effect } from "effect"
import { expect, it } from "vitest"
import { loadJapanese } from "#engines/kokoro/Japanese.ts"
import { kanaSymbols } from "#engines/kokoro/Kana.ts"
import { loadMandarin, syllableSymbols } from "#engines/kokoro/Mandarin.ts"
import { onlyWhere } from "../../support/groups/Needs.ts"
import { sentencesIn } from "./languageSentences.ts"

const unihan = "/usr/share/unicode/Unihan_Readings.txt.bz2"
const naist = "/var/lib/mecab/dic/naist-jdic"

const mandarin = (await Effect.runPromise(loadMandarin))!
const japanese = (await Effect.runPromise(loadJapanese))!
const withoutStop = (language: string) => sentencesIn(language).map((sentence) => sentence.slice(0, -1))

const toneMarks = "\u0304\u0301\u030c\u0300"

/** "zhōng" → "zhong1". */
const numbered = (pinyin: string): string => {
  const parts = [...pinyin.normalize("NFD")]
  const tone = parts.reduce((found, part) => Math.max(found, toneMarks.indexOf(part) + 1), 0)
  const letters = parts.filter((part) => !toneMarks.includes(part)).join("")
  return `${letters.normalize("NFC")}${tone}`
}

/** Character → its readings in symbols, the most frequent one first. */
const readTable = (): ReadonlyMap<string, ReadonlyArray<string>> => {
  const table = new Map<string, Array<string>>()
  const text = execFileSync("bzcat", [unihan], { encoding: "utf8", maxBuffer: 2 ** 28 })
  for (const key of ["kMandarin", "kHanyuPinlu", "kXHC1983", "kTGHZ2013"]) {
    for (const [, code, value] of text.matchAll(new RegExp(`^U\\+(\\w+)\t${key}\t(.+)$`, "gm"))) {
      const character = String.fromCodePoint(Number.parseInt(code!, 16))
      const found = value!
        .split(" ")
        .flatMap((part) => part.replace(/^[\d.,*]+:|\(\d+\)/g, "").split(","))
        .flatMap((pinyin) => syllableSymbols(numbered(pinyin)) ?? [])
      table.set(character, [...new Set([...(table.get(character) ?? []), ...found])])
    }
  }
  return table
}

it(
  "Chinese",
  onlyWhere(existsSync(unihan), "no table of readings found; Debian package unicode-data"),
  () => {
    const table = readTable()
    const others = new Map<string, number>()
    let syllables = 0
    for (const sentence of withoutStop("zh")) {
      const readings = [...sentence].map((character) => table.get(character)!)
      const longestFirst = readings.map((some) => [...some].sort((a, b) => b.length - a.length).join("|"))
      const found = new RegExp(`^${longestFirst.map((some) => `(${some})`).join(" ?")}$`).exec(
        mandarin(sentence),
      )
      expect([sentence, found?.[0]]).toEqual([sentence, mandarin(sentence)])
      for (const [at, character] of [...sentence].entries()) {
        syllables++
        const other = `${character} ${found![at + 1]}`
        if (found![at + 1] !== readings[at]![0]) others.set(other, (others.get(other) ?? 0) + 1)
      }
    }
    expect(syllables).toBe(2230)
    // Right in their words, but for two: 地 of 耐心地 is neutral "de", and 子 of 橙子 is neutral.
    expect(Object.fromEntries(others)).toEqual({
      "个 kɤ": 20,
      "会 kʰwai↘": 10,
      "叔 ʂu": 10,
      "地 ti↘": 10,
      "妈 ma": 10,
      "姐 ʨje": 10,
      "子 ʦɨ↓": 10,
      "欢 xwan": 10,
      "行 xa↗ŋ": 10,
      "重 ꭧʰʊ↗ŋ": 10,
      "长 ꭧʰa↗ŋ": 10,
    })
  },
)

it(
  "Japanese",
  onlyWhere(existsSync(naist), "no dictionary found; Debian packages mecab and mecab-naist-jdic"),
  () => {
    const sentences = withoutStop("ja")
    const lines = execFileSync("mecab", ["-d", naist, "-F%m/%f[8] ", "-E\n"], {
      input: `${sentences.join("\n")}\n`,
      encoding: "utf8",
    })
      .trim()
      .split("\n")
    expect(lines).toHaveLength(200)
    // Long vowels after "e" are compared elsewhere: the dictionary writes "センセイ" for both.
    const plain = (symbols: string) => symbols.replace(/ /g, "").replaceAll("eː", "ei")
    for (const [at, line] of lines.entries()) {
      const kana = line
        .trim()
        .split(" ")
        .map((word) => word.split("/")[1]!)
      const theirs = kana.map(kanaSymbols).join("")
      expect([sentences[at], plain(japanese(sentences[at]!))]).toEqual([sentences[at], plain(theirs)])
    }
  },
)
