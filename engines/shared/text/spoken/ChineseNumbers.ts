// Digits of a Chinese sentence → Chinese characters: years, amounts, per cent, telephone numbers. Pure.

const digits = "零一二三四五六七八九"
const places = ["", "十", "百", "千"]
const scales = ["", "万", "亿", "万亿"]

const digitByDigit = (number: string): string => [...number].map((digit) => digits[Number(digit)]).join("")

/** Up to four digits, without their scale; empty for zeros alone. */
const group = (number: string): string => {
  let said = ""
  let isGap = false
  for (const [at, digit] of [...number].entries()) {
    if (digit === "0") {
      isGap = said !== ""
      continue
    }
    said += `${isGap ? "零" : ""}${digits[Number(digit)]}${places[number.length - 1 - at]}`
    isGap = false
  }
  return said
}

/** "120305" → "十二万零三百零五". Over sixteen digits, or with zeros before it, digit by digit. */
const chineseCardinal = (number: string): string => {
  if (number === "0") return "零"
  if (number.length > 16 || number.startsWith("0")) return digitByDigit(number)
  let said = ""
  let isGap = false
  for (let scale = Math.ceil(number.length / 4) - 1; scale >= 0; scale--) {
    const end = number.length - 4 * scale
    const part = number.slice(Math.max(0, end - 4), end)
    const words = group(part)
    if (words !== "")
      said += `${said !== "" && (isGap || part.startsWith("0")) ? "零" : ""}${words}${scales[scale]}`
    isGap = words === ""
  }
  return said.replace(/^一十/, "十")
}

const decimal = (number: string): string => {
  const [whole = "", fraction] = number.split(".")
  return fraction === undefined
    ? chineseCardinal(whole)
    : `${chineseCardinal(whole)}点${digitByDigit(fraction)}`
}

/** Measure words before which "two" is 两. */
const measures =
  "个|位|只|条|张|本|次|天|年(?!级)|小时|分钟|点|块|件|名|人|家|种|台|辆|岁|公斤|千克|克|吨|米|公里|千米|厘米|毫米|升|毫升|倍|周|杯|瓶|层|座|场|项|双|对|套|段|步|把|部|间|颗|句|首|元|美元|欧元|英镑|日元"

type Rule = readonly [pattern: RegExp, say: (all: string, a: string, b: string, c: string) => string]

const amount = String.raw`\d+(?:\.\d+)?`

const rules: ReadonlyArray<Rule> = [
  [
    /(?<![\d:])(\d{1,2}):(\d{2}):(\d{2})(?![\d:])/g,
    (_, hours, minutes, seconds) => `${hours}点${minutes}分${seconds}秒`,
  ],
  [/(?<=\d):(?=\d)/g, () => "比"],
  // Names of things: "CA1234".
  [/(?<=\p{Script=Latin})\d{3,}/gu, digitByDigit],
  // Telephone numbers: several groups of digits, or the eleven of a mobile.
  [
    /(?<!\d)\d{2,5}(?:-\d{2,8}){1,3}(?!\d)|(?<![\d.])1[3-9]\d{9}(?!\d)/g,
    (all) => all.split("-").map(digitByDigit).join(" "),
  ],
  [/(?<![\d.])([12]\d{3})(?=\s?年)/g, (_, year) => digitByDigit(year)],
  [new RegExp(String.raw`(${amount})\s?%`, "g"), (_, number) => `百分之${decimal(number)}`],
  [new RegExp(String.raw`(${amount})\s?‰`, "g"), (_, number) => `千分之${decimal(number)}`],
  [new RegExp(String.raw`(?<![\d.第])2(?=\s?(?:${measures}))`, "g"), () => "两"],
  [new RegExp(amount, "g"), (number) => decimal(number)],
]

export const chineseNumbers = (sentence: string): string =>
  rules.reduce((out, [pattern, say]) => out.replace(pattern, say), sentence)
