// What Chinese writes in signs. Digits become characters (ChineseNumbers.ts), because the front end reads characters alone.
import { chineseNumbers } from "./ChineseNumbers.ts"
import { type SpokenForms, signsOf, uncounted } from "./SpokenForms.ts"

const digits = ["1", "2", "3", "4", "5", "6", "7", "8", "9"]

export const chinese: SpokenForms = {
  decimal: ".",
  spaceless: true,
  numbers: chineseNumbers,
  months: [...digits, "10", "11", "12"],
  date: (day, month, year) => `${year}年${month}月${day}日`,
  time: (hours, minutes) =>
    minutes === "0" ? `${hours}点` : `${hours}点${minutes.length === 1 ? "零" : ""}${minutes}分`,
  currencies: uncounted("HK$=港元; US$=美元; $=美元; €=欧元; £=英镑; ¥=元; ₹=卢比; ₩=韩元"),
  scales: { words: "万亿|亿|万|千|百", of: "" },
  and: "",
  units: uncounted(`
    km/h=公里每小时; m/s=米每秒
    km2=平方公里; m2=平方米; cm2=平方厘米
    m3=立方米; cm3=立方厘米
    km=公里; m=米; cm=厘米; mm=毫米; ha=公顷
    kg=公斤; g=克; mg=毫克; t=吨
    l=升; L=升; ml=毫升; mL=毫升
    h=小时; min=分钟; s=秒; ms=毫秒
    Hz=赫兹; kHz=千赫; MHz=兆赫; GHz=吉赫
    W=瓦; kW=千瓦; kWh=千瓦时; V=伏
    °C=摄氏度; °F=华氏度; °=度
  `),
  fractions: Object.fromEntries(
    digits.flatMap((top) => digits.map((bottom) => [`${top}/${bottom}`, `${bottom}分之${top}`] as const)),
  ),
  ordinals: [],
  minus: "负",
  to: "到",
  number: "编号",
  address: { dot: "点", at: "艾特", slash: "斜杠" },
  signs: signsOf(`
    & 和; @ 艾特; + 加; = 等于; × 乘; ÷ 除以; ± 正负; ≈ 约等于; ≠ 不等于; ≤ 小于等于; ≥ 大于等于; < 小于
    > 大于; √ 根号; ∞ 无穷大; # 井号; ° 度
  `),
  abbreviations: [],
}
