// English dates, times, money, measures and other ways of writing a number → words, one sentence at a time. The order
// of the rules matters (a date before a range, a range before a number). Pure.
import type { Accent } from "./Numbers.ts"
import { cardinal, decimal, digitByDigit, ordinal, plural, year } from "./Numbers.ts"
import { currencies, monthOf, months, units } from "./SpokenWords.ts"

type Say = (groups: ReadonlyArray<string | undefined>, accent: Accent) => string | undefined
interface Rule {
  readonly pattern: RegExp
  /** Undefined leaves the text unchanged, for a later rule. */
  readonly say: Say
}

const number = String.raw`\d{1,3}(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?|\.\d+`
const monthPattern = String.raw`(?:${months.join("|")}|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept|Sep|Oct|Nov|Dec)\b\.?)`
const notInside = String.raw`(?<![\w.,])`

const rule = (source: string, say: Say, flags = "gu"): Rule => ({ pattern: new RegExp(source, flags), say })

const day = (digits: string, accent: Accent): string => ordinal(digits, accent)

const date = (d: string, month: number, y: string | undefined, accent: Accent): string | undefined => {
  const name = months[month - 1]
  if (name === undefined || Number(d) < 1 || Number(d) > 31) return undefined
  const tail = y === undefined ? "" : `, ${year(y, accent)}`
  return accent === "british" ? `the ${day(d, accent)} of ${name}${tail}` : `${name} ${day(d, accent)}${tail}`
}

const shortYear = (digits: string): string => (digits.length === 2 ? `20${digits}` : digits)

const clock = (h: string, m: string, meridiem: string | undefined, accent: Accent): string | undefined => {
  if (Number(h) > 24 || Number(m) > 59) return undefined
  const half = meridiem === undefined ? "" : ` ${meridiem.toUpperCase()} M`
  const hour = cardinal(h, accent)
  if (Number(m) === 0)
    return half === "" ? (Number(h) > 12 ? `${hour} hundred` : `${hour} o'clock`) : hour + half
  return `${hour} ${m.startsWith("0") ? `oh ${cardinal(m, accent)}` : cardinal(m, accent)}${half}`
}

/** "3" and "50" of "$3.50". */
const money = (sign: string, amount: string, scale: string, accent: Accent): string | undefined => {
  const currency = currencies[sign]
  if (currency === undefined) return undefined
  if (scale !== "") return `${decimal(amount, accent)} ${scale} ${currency.many}`
  const [whole = "0", cents] = amount.replaceAll(",", "").split(".")
  if (cents !== undefined && cents.length !== 2) return `${decimal(amount, accent)} ${currency.many}`
  const major = `${cardinal(whole, accent)} ${Number(whole) === 1 ? currency.one : currency.many}`
  if (cents === undefined || Number(cents) === 0) return major
  const minor = `${cardinal(cents, accent)} ${Number(cents) === 1 ? currency.cent.one : currency.cent.many}`
  return Number(whole) === 0 ? minor : `${major} and ${minor}`
}

const scaleOf: Readonly<Record<string, string>> = {
  k: "thousand",
  m: "million",
  bn: "billion",
  b: "billion",
}
const scalePattern = String.raw`(?:\s?(thousand|million|billion|trillion)\b|(k|m|bn|b)\b)?`
const scaleWord = (word: string | undefined, letter: string | undefined): string =>
  word ?? scaleOf[letter?.toLowerCase() ?? ""] ?? ""

const fraction = (top: string, bottom: string, accent: Accent): string | undefined => {
  if (Number(bottom) < 2 || Number(bottom) > 20 || Number(top) >= Number(bottom) || Number(top) === 0)
    return undefined
  const part = bottom === "2" ? "half" : bottom === "4" ? "quarter" : ordinal(bottom, accent)
  return `${cardinal(top, accent)} ${Number(top) === 1 ? part : bottom === "2" ? "halves" : plural(part)}`
}

const inGroups = (text: string): string =>
  text
    .split(/\D+/)
    .filter((group) => group !== "")
    .map(digitByDigit)
    .join(", ")

/** Numbers from 1100 to 2099 that stand alone are years; "1,500" and "1500 km" are amounts. */
const isYear = (digits: string): boolean => /^(?:1[1-9]|20)\d\d$/.test(digits)

const rules: ReadonlyArray<Rule> = [
  // Telephone numbers: groups of digits, digit by digit.
  rule(String.raw`${notInside}\+\d[\d ().-]{6,22}\d(?![\w])`, ([all]) => `plus ${inGroups(all!)}`),
  rule(String.raw`${notInside}(?:1[-. ])?\(?\d{3}\)?[-. ]\d{3}[-. ]\d{4}(?![\w-])`, ([all]) =>
    inGroups(all!),
  ),
  rule(String.raw`${notInside}\d{3}-\d{4}(?![\w-])`, ([all]) => inGroups(all!)),
  // Dates.
  rule(String.raw`${notInside}(\d{4})-(\d{1,2})-(\d{1,2})(?![\w-])`, ([, y, m, d], accent) =>
    date(d!, Number(m), y, accent),
  ),
  rule(String.raw`${notInside}(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})(?![\w/])`, ([, a, b, y], accent) => {
    const monthFirst = accent === "american" ? Number(a) <= 12 : Number(b) > 12
    return monthFirst
      ? date(b!, Number(a), shortYear(y!), accent)
      : date(a!, Number(b), shortYear(y!), accent)
  }),
  rule(
    String.raw`\b(${monthPattern})\s(\d{1,2})(?:st|nd|rd|th)?(?:,?\s(\d{4}))?(?![\w:])`,
    ([, name, d, y], accent) => date(d!, monthOf(name!), y, accent),
  ),
  rule(
    String.raw`${notInside}(\d{1,2})(?:st|nd|rd|th)?\s(?:of\s)?(${monthPattern})(?:,?\s(\d{4}))?(?!\w)`,
    ([, d, name, y], accent) => date(d!, monthOf(name!), y, accent),
  ),
  // Times.
  rule(
    String.raw`${notInside}(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\s?([ap])\.?\s?m\b\.?)?(?![\d:])`,
    ([, h, m, s, half], accent) => {
      const time = clock(h!, m!, half, accent)
      if (time === undefined || s === undefined || Number(s) > 59) return time
      return `${time} and ${cardinal(s, accent)} ${Number(s) === 1 ? "second" : "seconds"}`
    },
    "giu",
  ),
  rule(
    String.raw`${notInside}(\d{1,2})\s?([ap])\.?\s?m\b(?:\.(?=\s\S))?`,
    ([, h, half], accent) => clock(h!, "00", half, accent),
    "giu",
  ),
  // Money, before and after the amount.
  rule(
    String.raw`(?<!\d\s?)([-−])?(?:US|A|C|HK|NZ)?([$£€¥₹₩])\s?(${number})${scalePattern}`,
    ([, minus, sign, amount, word, letter], accent) => {
      const said = money(sign!, amount!, scaleWord(word, letter), accent)
      return minus === undefined || said === undefined ? said : `minus ${said}`
    },
    "giu",
  ),
  rule(
    String.raw`${notInside}(${number})${scalePattern}\s?([$£€¥₹₩])(?!\d)`,
    ([, amount, word, letter, sign], accent) => money(sign!, amount!, scaleWord(word, letter), accent),
    "giu",
  ),
  // Decades before the unit "s", signs before anything that follows the number.
  rule(String.raw`(?<![\w.,])'?(\d{4}|\d0)'?s\b`, ([, n], accent) =>
    plural(n!.length === 4 ? year(n!, accent) : cardinal(n!, accent)),
  ),
  rule(String.raw`(?<=^|[\s(])[-−](?=\.?\d)`, () => "minus "),
  // Number and mark: #5, No. 5, 50 %, 5 km.
  rule(String.raw`(?:#|№|\bNo\.|\bno\.)\s?(?=\d)`, () => "number "),
  rule(String.raw`${notInside}(\d+)\s?[-–—]\s?(\d+)\s?%`, ([, a, b], accent) => {
    return `${cardinal(a!, accent)} to ${cardinal(b!, accent)} percent`
  }),
  rule(String.raw`(${number})\s?%`, ([, n], accent) => `${decimal(n!, accent)} percent`),
  rule(
    String.raw`(${number})\s?(${Object.keys(units)
      .sort((a, b) => b.length - a.length)
      .join("|")})(?![\p{L}\d])`,
    ([, n, unit], accent) => {
      const { one, many } = units[unit!]!
      return `${decimal(n!, accent)} ${n === "1" ? one : many}`
    },
  ),
  // Ordinals, years.
  rule(String.raw`${notInside}(\d{1,3}(?:,\d{3})+|\d+)(?:st|nd|rd|th)\b`, ([, n], accent) =>
    ordinal(n!.replaceAll(",", ""), accent),
  ),
  rule(String.raw`(?<![\w.,])'(\d\d)(?![\w'])`, ([, n], accent) =>
    n!.startsWith("0") ? `oh ${digitByDigit(n![1]!)}` : cardinal(n!, accent),
  ),
  rule(String.raw`${notInside}(\d{4})\s?[-–—]\s?(\d{4}|\d\d)(?![\w-])`, ([, a, b], accent) => {
    return isYear(a!) ? `${year(a!, accent)} to ${year(b!, accent)}` : undefined
  }),
  rule(String.raw`${notInside}(\d)'\s?(\d{1,2})(?:"|'')?(?!\w)`, ([, feet, inches], accent) => {
    return `${cardinal(feet!, accent)} foot ${cardinal(inches!, accent)}`
  }),
  // Fractions, ranges, scores, ratios.
  rule(
    String.raw`(?<![\w./])(?:(\d+)\s)?(\d{1,2})[/⁄](\d{1,2})(?![\w/])`,
    ([, whole, top, bottom], accent) => {
      const said = fraction(top!, bottom!, accent)
      if (said === undefined)
        return whole === undefined ? `${cardinal(top!, accent)} ${cardinal(bottom!, accent)}` : undefined
      return whole === undefined
        ? said
        : `${cardinal(whole!, accent)} and ${said.replace(/^one (?=half)/, "a ")}`
    },
  ),
  rule(
    String.raw`${notInside}(${number})\s?[–—]\s?(${number})(?![\w-])`,
    ([, a, b], accent) => `${decimal(a!, accent)} to ${decimal(b!, accent)}`,
  ),
  rule(
    String.raw`${notInside}(\d+)[-:](\d+)(?![\w-])`,
    ([, a, b], accent) => `${cardinal(a!, accent)} to ${cardinal(b!, accent)}`,
  ),
  // The rest: versions, long digit strings or ones with leading zeros, decimals, years, whole numbers.
  rule(String.raw`\d+(?:\.\d+){2,}`, ([all], accent) =>
    all!
      .split(".")
      .map((part) => cardinal(part, accent))
      .join(" point "),
  ),
  rule(String.raw`(?<![\d.,])(?:0\d+|\d{10,})(?![\d.,]*\d)`, ([all]) => digitByDigit(all!)),
  rule(number, ([all], accent) => (isYear(all!) ? year(all!, accent) : decimal(all!, accent))),
]

/** The sentence with all digits replaced by words. */
export const sayNumbers = (sentence: string, accent: Accent): string => {
  if (!/\d/.test(sentence)) return sentence
  let out = sentence
  for (const { pattern, say } of rules) {
    out = out.replace(pattern, (...args: ReadonlyArray<unknown>) => {
      const offset = args.findLastIndex((value) => typeof value === "number")
      const groups = args.slice(0, offset) as ReadonlyArray<string | undefined>
      const whole = groups[0]!
      const said = say(groups, accent)
      return said === undefined ? whole : spaced(said, out, Number(args[offset]), whole)
    })
  }
  // Digits of other scripts and rests of odd groupings: digit by digit, so that none is lost.
  return out.replace(/\d+/g, (digits) => ` ${digitByDigit(digits)} `)
}

/** Adds spaces where the words would join the letters around the number: "A4" → "A four". */
const spaced = (said: string, text: string, offset: number, whole: string): string => {
  const before = /[\p{L}\p{N}]/u.test(text[offset - 1] ?? "") ? " " : ""
  const after = /[\p{L}\p{N}]/u.test(text[offset + whole.length] ?? "") ? " " : ""
  return before + said + after
}
