// English number words. Pure. Digits are passed as strings, so that any length is possible.

/** "american": "one hundred one"; "british": "one hundred and one". */
export type Accent = "american" | "british"

const onesWords =
  "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen".split(
    " ",
  )
const tens = "_ _ twenty thirty forty fifty sixty seventy eighty ninety".split(" ")
const scales = ["", "thousand", "million", "billion", "trillion", "quadrillion", "quintillion"]

/** Digit by digit, with "zero". ("oh five" is used in years and times only.) */
export const digitByDigit = (digits: string): string =>
  [...digits].map((digit) => onesWords[Number(digit)] ?? "").join(" ")

const underHundred = (value: number): string => {
  if (value < 20) return onesWords[value]!
  const ones = value % 10
  return ones === 0 ? tens[Math.floor(value / 10)]! : `${tens[Math.floor(value / 10)]} ${onesWords[ones]}`
}

const underThousand = (value: number, accent: Accent): string => {
  const rest = value % 100
  if (value < 100) return underHundred(value)
  const hundreds = `${onesWords[Math.floor(value / 100)]} hundred`
  if (rest === 0) return hundreds
  return accent === "british" ? `${hundreds} and ${underHundred(rest)}` : `${hundreds} ${underHundred(rest)}`
}

/** "1234567" → "one million two hundred thirty four thousand five hundred sixty seven". */
export const cardinal = (digits: string, accent: Accent): string => {
  const trimmed = digits.replace(/^0+(?=\d)/, "")
  if (trimmed.length > scales.length * 3) return digitByDigit(trimmed)
  const words: Array<string> = []
  const groups = Math.ceil(trimmed.length / 3)
  for (let group = groups - 1; group >= 0; group--) {
    const end = trimmed.length - group * 3
    const value = Number(trimmed.slice(Math.max(0, end - 3), end))
    if (value === 0 && groups > 1) continue
    const small = group === 0 && groups > 1 && value < 100 && accent === "british"
    if (small) words.push("and")
    words.push(underThousand(value, accent))
    if (group > 0) words.push(scales[group]!)
  }
  return words.join(" ")
}

const irregular: Readonly<Record<string, string>> = {
  one: "first",
  two: "second",
  three: "third",
  five: "fifth",
  eight: "eighth",
  nine: "ninth",
  twelve: "twelfth",
}

/** "21" → "twenty first". */
export const ordinal = (digits: string, accent: Accent): string => {
  const words = cardinal(digits, accent).split(" ")
  const last = words.pop()!
  words.push(irregular[last] ?? (last.endsWith("y") ? `${last.slice(0, -1)}ieth` : `${last}th`))
  return words.join(" ")
}

/** "1984" → "nineteen eighty four", "2005" → "two thousand five", "1905" → "nineteen oh five". */
export const year = (digits: string, accent: Accent): string => {
  const century = Number(digits.slice(0, -2))
  const rest = Number(digits.slice(-2))
  if (digits.length !== 4 || (century % 10 === 0 && rest < 10)) return cardinal(digits, accent)
  if (rest === 0) return `${underHundred(century)} hundred`
  return `${underHundred(century)} ${rest < 10 ? `oh ${onesWords[rest]}` : underHundred(rest)}`
}

/** The plural of the last word: "nineteen eighty" → "nineteen eighties". */
export const plural = (words: string): string => {
  if (words.endsWith("y")) return `${words.slice(0, -1)}ies`
  return words.endsWith("x") ? `${words}es` : `${words}s`
}

/** "3.14" → "three point one four"; the whole part may contain commas between thousands. */
export const decimal = (number: string, accent: Accent): string => {
  const [whole = "", fraction] = number.replaceAll(",", "").split(".")
  const words = whole === "" ? "zero" : cardinal(whole, accent)
  return fraction === undefined || fraction === "" ? words : `${words} point ${digitByDigit(fraction)}`
}
