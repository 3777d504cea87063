// Digits of a Japanese sentence, with the counters behind them → katakana as it is pronounced: a counter changes its number, and a number
// its counter ("3本" → "サンボン"). Pure.

const digits = "ゼロ イチ ニ サン ヨン ゴ ロク ナナ ハチ キュー".split(" ")
const hundreds: Readonly<Record<string, string>> = {
  "1": "ヒャク",
  "3": "サンビャク",
  "6": "ロッピャク",
  "8": "ハッピャク",
}
const thousands: Readonly<Record<string, string>> = { "3": "サンゼン", "8": "ハッセン" }
const scales = ["", "マン", "オク", "チョー"]

const digitByDigit = (number: string): string => [...number].map((digit) => digits[Number(digit)]).join("")

/** Sounds with which a number ends and that the next sound shortens: "イチ" and "カイ" are "イッカイ". */
const shortened = { k: /(?:イチ|ロク|ハチ|ジュー|ヒャク)$/, s: /(?:イチ|ハチ|ジュー)$/ }
type Shortening = keyof typeof shortened

const shorten = (number: string, by: Shortening): string =>
  number.replace(shortened[by], (end) => (end === "ジュー" ? "ジュッ" : `${end.slice(0, -1)}ッ`))

/** Up to four digits, without their scale; empty for zeros alone. */
const group = (number: string, isScaled: boolean): string => {
  const [thousand = "0", hundred = "0", ten = "0", one = "0"] = number.padStart(4, "0")
  const said = (digit: string, word: string): string =>
    digit === "0" ? "" : `${digit === "1" ? "" : digits[Number(digit)]}${word}`
  return [
    thousand === "1" && isScaled ? "イッセン" : (thousands[thousand] ?? said(thousand, "セン")),
    hundreds[hundred] ?? said(hundred, "ヒャク"),
    said(ten, "ジュー"),
    one === "0" ? "" : digits[Number(one)]!,
  ].join("")
}

/** "1300" → "センサンビャク". Over sixteen digits, or with zeros before it, digit by digit. */
const japaneseCardinal = (number: string): string => {
  if (number === "0") return digits[0]!
  if (number.length > 16 || number.startsWith("0")) return digitByDigit(number)
  let said = ""
  for (let scale = Math.ceil(number.length / 4) - 1; scale >= 0; scale--) {
    const end = number.length - 4 * scale
    const words = group(number.slice(Math.max(0, end - 4), end), scale > 0)
    if (words !== "") said += `${scale === 3 ? shorten(words, "s") : words}${scales[scale]}`
  }
  return said
}

const decimal = (number: string): string => {
  const [whole = "", fraction] = number.split(".")
  if (fraction === undefined) return japaneseCardinal(whole)
  const before = whole === "0" ? "レー" : shorten(japaneseCardinal(whole), "s")
  return `${before}テン${digitByDigit(fraction)}`
}

/** How a counter sounds: at all, after a shortened number, after "three" or another "ン", and after "four". */
interface Counter {
  readonly by?: Shortening
  readonly plain: string
  readonly short: string
  readonly three: string
  readonly four: string
}

/** Rows of "written|written=sound:sound after a shortened number:after 3:after 4". */
const counterRows = (rows: string, by?: Shortening): ReadonlyArray<readonly [string, Counter]> =>
  rows.split(" ").flatMap((row) => {
    const [written = "", sounds = ""] = row.split("=")
    const [plain = "", short = plain, three = plain, four = plain] = sounds.split(":")
    return written
      .split("|")
      .map((one) => [one, { ...(by === undefined ? {} : { by }), plain, short, three, four }] as const)
  })

const counters = new Map<string, Counter>([
  ...counterRows(
    "枚=マイ 台=ダイ 度=ド 倍=バイ 番=バン 番目=バンメ 番線=バンセン 番地=バンチ 号=ゴー 号室=ゴーシツ 号車=ゴーシャ 名=メー 秒=ビョー 秒間=ビョーカン 位=イ 割=ワリ 話=ワ 部=ブ 行=ギョー 代=ダイ 元=ゲン",
  ),
  ...counterRows(
    "回=カイ 回目=カイメ 個=コ 階=カイ:カイ:ガイ 軒=ケン:ケン:ゲン 件=ケン 曲=キョク 巻=カン か月|ヶ月|カ月|ヵ月|箇月=カゲツ か国|ヶ国|カ国=カコク か所|ヶ所|カ所|箇所=カショ 校=コー 級=キュー 課=カ",
    "k",
  ),
  ...counterRows(
    "分=フン:プン:プン:プン 分間=フンカン:プンカン:プンカン:プンカン 本=ホン:ポン:ボン 匹=ヒキ:ピキ:ビキ 杯=ハイ:パイ:バイ 泊=ハク:パク:パク:パク 歩=ホ:ポ:ポ 票=ヒョー:ピョー:ビョー 発=ハツ:パツ:パツ:パツ 品=ヒン:ピン",
    "k",
  ),
  ...counterRows(
    "歳|才=サイ 冊=サツ 週=シュー 週間=シューカン 周=シュー 周年=シューネン 世紀=セーキ 頭=トー 着=チャク 点=テン 通=ツー 足=ソク:ソク:ゾク 章=ショー 節=セツ 丁目=チョーメ 等=トー トン=トン センチ=センチ 兆=チョー 千=セン:セン:ゼン %|パーセント=パーセント ページ=ページ",
    "s",
  ),
])

/** Numbers that change before a counter, mostly 4, 7 and 9 at their end. */
const endings: Readonly<
  Record<string, readonly [sound: string, ...ends: ReadonlyArray<readonly [RegExp, string]>]>
> = {
  万: ["マン", [/^セン/, "イッセン"]],
  億: ["オク", [/^セン/, "イッセン"]],
  年: ["ネン", [/ヨン$/, "ヨ"]],
  年間: ["ネンカン", [/ヨン$/, "ヨ"]],
  年生: ["ネンセー", [/ヨン$/, "ヨ"]],
  年代: ["ネンダイ", [/ヨン$/, "ヨ"]],
  年度: ["ネンド", [/ヨン$/, "ヨ"]],
  円: ["エン", [/ヨン$/, "ヨ"]],
  人: ["ニン", [/ヨン$/, "ヨ"]],
  人前: ["ニンマエ", [/ヨン$/, "ヨ"]],
  人目: ["ニンメ", [/ヨン$/, "ヨ"]],
  時: ["ジ", [/^ゼロ$/, "レー"], [/ヨン$/, "ヨ"], [/ナナ$/, "シチ"], [/キュー$/, "ク"]],
  時間: ["ジカン", [/ヨン$/, "ヨ"], [/ナナ$/, "シチ"], [/キュー$/, "ク"]],
  月: ["ガツ", [/ヨン$/, "シ"], [/ナナ$/, "シチ"], [/キュー$/, "ク"]],
  日: ["ニチ", [/ナナ$/, "シチ"], [/キュー$/, "ク"]],
  日間: ["ニチカン", [/ナナ$/, "シチ"], [/キュー$/, "ク"]],
  日目: ["ニチメ", [/ナナ$/, "シチ"], [/キュー$/, "ク"]],
}

const numbered = (words: string, from = 1): Readonly<Record<string, string>> =>
  Object.fromEntries(words.split(" ").map((word, at) => [String(at + from), word]))

const withEnd = (words: Readonly<Record<string, string>>, end: string): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(words).map(([number, word]) => [number, `${word}${end}`]))

const days: Readonly<Record<string, string>> = {
  ...numbered("フツカ ミッカ ヨッカ イツカ ムイカ ナノカ ヨーカ ココノカ トーカ", 2),
  "14": "ジューヨッカ",
  "20": "ハツカ",
  "24": "ニジューヨッカ",
}

/** Whole words, by counter and number. */
const wholes: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  人: numbered("ヒトリ フタリ"),
  つ: numbered("ヒトツ フタツ ミッツ ヨッツ イツツ ムッツ ナナツ ヤッツ ココノツ"),
  日: days,
  人目: numbered("ヒトリメ フタリメ"),
  日間: withEnd(days, "カン"),
  日目: withEnd(days, "メ"),
}

const withCounter = (number: string, written: string): string => {
  const whole = wholes[written]?.[number]
  if (whole !== undefined) return whole
  const said = decimal(number)
  const ending = endings[written]
  if (ending !== undefined) {
    const [sound, ...ends] = ending
    return `${ends.reduce((out, [end, other]) => out.replace(end, other), said)}${sound}`
  }
  const counter = counters.get(written)
  // "つ" counts to nine.
  if (counter === undefined) return `${said}${written}`
  const { by, four, plain, short, three } = counter
  const shorter = by === undefined ? said : shorten(said, by)
  if (shorter !== said) return `${shorter}${short}`
  if (/(?:サン|セン|ゼン|マン)$/.test(said)) return `${said}${three}`
  return `${said}${said.endsWith("ヨン") ? four : plain}`
}

const amount = String.raw`\d+(?:\.\d+)?`
const written = [...counters.keys(), ...Object.keys(endings), ...Object.keys(wholes)]
  .sort((a, b) => b.length - a.length)
  .join("|")

const numerals = "〇一二三四五六七八九"
const kanji = `[一二三四五六七八九十百千][${numerals}十百千万億兆]{0,15}`
const powers: Readonly<Record<string, number>> = { 十: 10, 百: 100, 千: 1000, 万: 1e4, 億: 1e8, 兆: 1e12 }

/** "二〇二四" and "二千二十四" → "2024". */
const kanjiNumber = (text: string): string => {
  if (!/[十百千万億兆]/.test(text)) return [...text].map((one) => numerals.indexOf(one)).join("")
  let sum = 0
  let part = 0
  let digit = 0
  for (const one of text) {
    const power = powers[one]
    if (power === undefined) digit = numerals.indexOf(one)
    else {
      if (power < 1e4) part += Math.max(digit, 1) * power
      else {
        sum += Math.max(part + digit, 1) * power
        part = 0
      }
      digit = 0
    }
  }
  return String(sum + part + digit)
}

type Rule = readonly [pattern: RegExp, say: (all: string, a: string, b: string, c: string) => string]

const rules: ReadonlyArray<Rule> = [
  // Numbers in kanji, whose readings the dictionary does not fit to each other, but no names of places. "十分" alone is "enough".
  [
    new RegExp(
      `(?!千歳|(?<!時)十分(?![間後前ほ以く]))${kanji}(?=(?:${written})(?![り称月木市島橋]|三脚))`,
      "g",
    ),
    kanjiNumber,
  ],
  [
    /(?<![\d:])(\d{1,2}):(\d{2}):(\d{2})(?![\d:])/g,
    (_, hours, minutes, seconds) => `${hours}時${minutes}分${seconds}秒`,
  ],
  [/(?<=\d):(?=\d)/g, () => "タイ"],
  // Names of things: "CA1234".
  [/(?<=\p{Script=Latin})\d{3,}/gu, digitByDigit],
  // Telephone numbers.
  [/(?<!\d)\d{2,5}(?:-\d{2,5}){1,3}(?!\d)/g, (all) => all.split("-").map(digitByDigit).join("ノ ")],
  [/(\d+)\s?分の\s?(\d+)/g, (_, bottom, top) => `${japaneseCardinal(bottom)}ブンノ${japaneseCardinal(top)}`],
  [/(?<=月\s?)0?1\s?日/g, () => "ツイタチ"],
  [
    new RegExp(String.raw`(${amount})\s?(${written})(?![り称])`, "g"),
    (_, number, counter) => withCounter(number.replace(/^0(?=[1-9])/, ""), counter),
  ],
  [new RegExp(amount, "g"), (number) => decimal(number)],
]

export const japaneseNumbers = (sentence: string): string =>
  rules.reduce((out, [pattern, say]) => out.replace(pattern, say), sentence)
