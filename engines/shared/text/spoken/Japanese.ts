// What Japanese writes in signs. Digits and their counters become katakana (JapaneseNumbers.ts), because their readings depend on each other.
import { japaneseNumbers } from "./JapaneseNumbers.ts"
import { moneys, type SpokenForms, signsOf, uncounted } from "./SpokenForms.ts"

const digits = ["1", "2", "3", "4", "5", "6", "7", "8", "9"]

export const japanese: SpokenForms = {
  decimal: ".",
  spaceless: true,
  numbers: japaneseNumbers,
  months: [...digits, "10", "11", "12"],
  date: (day, month, year) => `${year}年${month}月${day}日`,
  time: (hours, minutes) => (minutes === "0" ? `${hours}時` : `${hours}時${minutes}分`),
  currencies: {
    ...uncounted("¥=円; ₩=ウォン; ₹=ルピー"),
    ...moneys(`
      US$=1 ドル=ドル=1 セント=セント; $=1 ドル=ドル=1 セント=セント
      €=1 ユーロ=ユーロ=1 セント=セント; £=1 ポンド=ポンド=1 ペンス=ペンス
    `),
  },
  scales: { words: "兆|億|万|千|百", of: "" },
  and: " ",
  units: uncounted(`
    km/h=キロメートルマイジ; m/s=メートルマイビョー
    km2=ヘーホーキロメートル; m2=ヘーホーメートル; cm2=ヘーホーセンチメートル
    m3=リッポーメートル; cm3=リッポーセンチメートル
    km=キロメートル; m=メートル; cm=センチメートル; mm=ミリメートル; ha=ヘクタール
    kg=キログラム; g=グラム; mg=ミリグラム; t=トン
    l=リットル; L=リットル; ml=ミリリットル; mL=ミリリットル
    h=時間; min=分; s=秒; ms=ミリビョー
    Hz=ヘルツ; kHz=キロヘルツ; MHz=メガヘルツ; GHz=ギガヘルツ
    KB=キロバイト; kB=キロバイト; MB=メガバイト; GB=ギガバイト; TB=テラバイト
    W=ワット; kW=キロワット; kWh=キロワットジ; V=ボルト
    °C=度; °F=カシド; °=度
  `),
  fractions: Object.fromEntries(
    digits.flatMap((top) => digits.map((bottom) => [`${top}/${bottom}`, `${bottom}分の${top}`] as const)),
  ),
  ordinals: [],
  minus: "マイナス",
  to: "から",
  number: "ナンバー",
  address: { dot: "ドット", at: "アットマーク", slash: "スラッシュ" },
  signs: signsOf(`
    & アンド; @ アットマーク; + プラス; = イコール; × カケル; ÷ ワル; ± プラスマイナス; ≈ ヤク
    ≠ ノットイコール; ≤ ショーナリイコール; ≥ ダイナリイコール; < ショーナリ; > ダイナリ; √ ルート
    ∞ ムゲンダイ; # シャープ; ° ド
  `),
  abbreviations: [],
}
