// One written sentence of any language but English → what its front end reads: dates, times, money, units and signs in words of the
// language where there is a table for it (SpokenForms.ts). Pure, linear in the length of the sentence.
import { addressParts } from "./Addresses.ts"
import { plainDigits } from "./Digits.ts"
import type { Counted, Currency, SpokenForms } from "./SpokenForms.ts"

/** Characters that are removed: all except letters, and signs that eSpeak reads in the language it speaks. */
const unspoken = /[^\p{L}\p{M}\p{N}\s';:,.!?—…"()“”%€$£+&@=°-]/gu

const tidy = (sentence: string): string => sentence.replace(unspoken, " ").replace(/\s+/g, " ").trim()

/** A sentence of a language without a table. */
export const foreignText = (sentence: string): string => tidy(plainDigits(sentence))

/** Text before it is cut into sentences. */
export type TextReader = {
  readonly whole: (text: string) => string
  readonly sentence: (sentence: string) => string
}

export const plainReader: TextReader = { whole: (text) => text, sentence: foreignText }

type Rule = readonly [RegExp, (...groups: ReadonlyArray<string>) => string]

const escapedKeys = (table: Readonly<Record<string, unknown>>): string =>
  Object.keys(table)
    .sort((a, b) => b.length - a.length)
    .map((key) => key.replace(/[.*+?^${}()|[\]\\/]/g, "\\$&"))
    .join("|")

const withoutZeros = (digits: string): string => digits.replace(/^0+(?=\d)/, "")

const amount = String.raw`\d+(?:[.,]\d+)?`

/** "1.234.567" and "1 234 567" → "1234567". Three groups of three digits with spaces are a telephone number. */
const ungrouped = (sentence: string, { decimal, spaceless }: SpokenForms): string => {
  const mark = decimal === "," ? String.raw`\.` : ","
  // In India the groups before the last have two digits.
  const marked = new RegExp(
    String.raw`(?<![\d.,])\d{1,3}(?:${mark}\d{2,3})*${mark}\d{3}(?!\d|[.,]\d{3})`,
    "g",
  )
  const joined = sentence.replace(marked, (number) => number.replace(/[.,]/g, ""))
  return spaceless
    ? joined
    : joined.replace(/(?<![\d.,]|\d )\d{1,3}(?: \d{3})+(?![\d.]| \d)/g, (number) =>
        /^\d{3} \d{3} \d{3}$/.test(number) ? number : number.replaceAll(" ", ""),
      )
}

const spokenMoney = (
  currency: Currency,
  written: string,
  scale: string | undefined,
  { and, scales }: SpokenForms,
): string => {
  if (scale !== undefined) return ` ${written} ${scale}${scales.of}${currency.many} `
  const [whole = "0", cents] = written.split(/[.,]/)
  const { cent } = currency
  if (cent === undefined || (cents !== undefined && cents.length !== 2))
    return ` ${written} ${currency.many} `
  const count = (digits: string, noun: Counted): string =>
    Number(digits) === 1 ? noun.one : `${withoutZeros(digits)} ${noun.many}`
  if (cents === undefined || Number(cents) === 0) return ` ${count(whole, currency)} `
  const small = count(cents, cent)
  return Number(whole) === 0 ? ` ${small} ` : ` ${count(whole, currency)}${and}${small} `
}

const rulesOf = (forms: SpokenForms): ReadonlyArray<Rule> => {
  const { currencies, fractions, months, signs, spaceless = false, units } = forms
  // Letters that a number belongs to, as in "A4" and "5th". Chinese and Japanese ones touch every number.
  const letter = spaceless ? String.raw`\p{Script=Latin}` : String.raw`\p{L}`
  const before = String.raw`(?<![${letter}\d.,])`
  const behind = String.raw`(?![${letter}\d])`
  const sign = escapedKeys(currencies)
  const scale = spaceless
    ? String.raw`(?:\s?(${forms.scales.words}))?`
    : String.raw`(?:\s(${forms.scales.words})${behind})?`
  const dated = (day: string, month: string, year: string, all: string): string => {
    const name = months[Number(month) - 1]
    const isDay = Number(day) >= 1 && Number(day) <= 31
    // "1.2.34" is a version.
    const isVersion = year.length === 2 && all.includes(".")
    if (name === undefined || !isDay || isVersion) return all
    return ` ${forms.date(withoutZeros(day), name, year.length === 2 ? `20${year}` : year)} `
  }
  const { time } = forms
  const timed = (hours: string, minutes: string, all: string): string =>
    time === undefined || Number(hours) > 24 || Number(minutes) > 59
      ? all
      : ` ${time(withoutZeros(hours), withoutZeros(minutes))} `
  const rule = (source: string, say: Rule[1]): Rule => [new RegExp(source, "gu"), say]
  return [
    rule(
      String.raw`${before}(\d{4})([/.-])(\d{1,2})\2(\d{1,2})(?![${letter}\d/-]|[.]\d)`,
      (all, y, _, m, d) => dated(d!, m!, y!, all!),
    ),
    rule(
      String.raw`${before}(\d{1,2})([/.-])(\d{1,2})\2(\d{4}|\d{2})(?![${letter}\d/-]|[.]\d)`,
      (all, first, _, m, last) =>
        spaceless && last!.length === 2 ? dated(last!, m!, first!, all!) : dated(first!, m!, last!, all!),
    ),
    rule(String.raw`${before}(?<!:)(\d{1,2})\s?[:h]\s?(\d{2})(?![${letter}\d:])`, (all, h, m) =>
      timed(h!, m!, all!),
    ),
    rule(String.raw`(${sign})\s?(${amount})${scale}`, (_, symbol, number, word) =>
      spokenMoney(currencies[symbol!]!, number!, word, forms),
    ),
    rule(String.raw`${before}(${amount})${scale}\s?(${sign})(?!\d)`, (_, number, word, symbol) =>
      spokenMoney(currencies[symbol!]!, number!, word, forms),
    ),
    rule(
      spaceless ? String.raw`(?<![${letter}\d])[-−](?=\d)` : String.raw`(?<=^|[\s(])[-−](?=\d)`,
      () => ` ${forms.minus} `,
    ),
    // With a hyphen only where the second number is the larger: others are telephone numbers and scores.
    rule(
      String.raw`${before}(${amount})\s?[–—〜~]\s?(${amount})(?![${letter}\d-])`,
      (_, a, b) => `${a}${forms.to}${b}`,
    ),
    rule(String.raw`${before}(?<!-)(\d{1,4})-(\d{1,4})(?![${letter}\d-])`, (all, a, b) =>
      Number(a) < Number(b) ? `${a}${forms.to}${b}` : all!,
    ),
    rule(String.raw`${before}(${amount})\s?(${escapedKeys(units)})${behind}`, (_, number, symbol) => {
      const unit = units[symbol!]!
      return number === "1" ? ` ${unit.one} ` : ` ${number} ${unit.many} `
    }),
    ...(spaceless ? [rule(String.raw`(?<=\S\s?)[〜~]\s?(?=\d)`, () => forms.to)] : []),
    rule(String.raw`(?:${before}[nN](?:[°º]|\.[°º]|r?\.)\s?|№\s?|#)(?=\d)`, () => ` ${forms.number} `),
    rule(String.raw`${before}(\d)[/⁄](\d)(?![\d/⁄])`, (all, top, bottom) => {
      const said = fractions[`${top}/${bottom}`]
      return said === undefined ? all! : ` ${said} `
    }),
    ...forms.ordinals.map(
      ([pattern, said]): Rule => [pattern, (_, number) => said.replace("$1", number ?? "")],
    ),
    ...(forms.point === undefined ? [] : [rule(String.raw`(?<=\d)\.(?=\d)`, () => ` ${forms.point} `)]),
    rule(sign, (symbol) => ` ${currencies[symbol!]!.many} `),
    rule(escapedKeys(signs), (symbol) => ` ${signs[symbol!]} `),
  ]
}

const addressPattern = /(?:https?:\/\/|www\.)[^\s<>"“”]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+/gi

const spokenAddress = (address: string, { at, dot, slash }: SpokenForms["address"]): string => {
  const { spoken, tail } = addressParts(address)
  return (
    spoken
      .replaceAll(".", ` ${dot} `)
      .replaceAll("@", ` ${at} `)
      .replaceAll("/", ` ${slash} `)
      .replace(/[^\p{L}\p{M}\p{N}]+/gu, " ") + tail
  )
}

/** What a language with a table says. */
export const readerOf = (forms: SpokenForms): TextReader => {
  const rules = rulesOf(forms)
  return {
    whole: (text) => {
      let out = text.replace(addressPattern, (address) => spokenAddress(address, forms.address))
      for (const [pattern, said] of forms.abbreviations) {
        const words = said.replace(/\.$/, "")
        out = out.replace(pattern, (written: string, offset: number, all: string) => {
          const rest = all.slice(offset + written.length, offset + written.length + 40)
          const ends =
            /^["”)]*\s*(?:$|\n)/.test(rest) || (said.endsWith(".") && /^\s+["“(]?\p{Lu}/u.test(rest))
          return written.endsWith(".") && ends ? `${words}.` : words
        })
      }
      return out
    },
    sentence: (sentence) => {
      let out = ungrouped(plainDigits(sentence), forms)
      for (const [pattern, say] of rules)
        out = out.replace(pattern, (...found: ReadonlyArray<unknown>) => {
          const groups = found.slice(
            0,
            found.findIndex((value) => typeof value === "number"),
          )
          return say(...(groups as ReadonlyArray<string>))
        })
      return tidy(forms.numbers?.(out) ?? out).replace(/\s+(?=[;:,.!?…)”])/g, "")
    },
  }
}
