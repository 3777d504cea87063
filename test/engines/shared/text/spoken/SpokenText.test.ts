// Tables of written and spoken forms in each language that has one; and properties of any text.
import fc from "fast-check"
import { describe, expect, it } from "vitest"
import { cleanText } from "#engines/shared/text/CleanText.ts"
import { sentences } from "#engines/shared/text/Sentences.ts"
import { textReader } from "#engines/shared/text/spoken/Languages.ts"

const said = (text: string, language: string): string => {
  const reader = textReader(language)
  return [...sentences(reader.whole(cleanText(text, language)))].map(reader.sentence).join(" | ")
}

const table: ReadonlyArray<readonly [language: string, written: string, spoken: string]> = [
  // Whole and decimal numbers stay digits, without marks between thousands.
  ["es", "1.234.567 personas, 1 234 y 3,5", "1234567 personas, 1234 y 3,5"],
  ["fr", "1 234 567 habitants et 3,5", "1234567 habitants et 3,5"],
  ["it", "12.345,67 e 1.000", "12345,67 e 1000"],
  ["pt", "1.234,5 e 3.5", "1234,5 e 3 ponto 5"],
  ["hi", "12,34,567 और 1,234.5", "1234567 और 1234.5"],
  ["es", "el 600 123 456", "el 600 123 456"],
  ["es", "٣٤ y २५", "34 y 25"],
  ["es", "a -5 °C", "a menos 5 grados Celsius"],
  // Dates.
  ["es", "el 25/12/2024 y el 2024-01-01", "el 25 de diciembre de 2024 y el primero de enero de 2024"],
  ["fr", "le 01/07/2024", "le 1er juillet 2024"],
  ["it", "il 25.12.2024", "il 25 dicembre 2024"],
  ["pt", "em 07-09-1822", "em 7 de setembro de 1822"],
  ["hi", "15/08/1947 को", "15 अगस्त 1947 को"],
  ["es", "versión 1.2.34 y 99/99/2024", "versión 1.2.34 y 99 99 2024"],
  // Times.
  ["es", "a las 10:30, 9:05 y 12:00", "a las 10 y 30, 9 y 5 y 12 en punto"],
  ["fr", "à 10h30, 10:30 et 1 h 00", "à 10 heures 30, 10 heures 30 et une heure"],
  ["it", "alle 10:30", "alle 10:30"],
  ["pt", "às 10h30 e 1:00", "às 10 horas e 30 e uma hora"],
  ["hi", "10:30 पर", "10 बजकर 30 मिनट पर"],
  // Money.
  ["es", "€25, 25 €, $1 y 3,50 €", "25 euros, 25 euros, un dólar y 3 euros con 50 céntimos"],
  ["fr", "12,01 € et 0,50 €", "12 euros et un centime et 50 centimes"],
  ["it", "€ 1, 2,5 milioni di euro, £10", "un euro, 2,5 milioni di euro, 10 sterline"],
  ["pt", "R$ 10,50 e US$ 3 milhões", "10 reais e 50 centavos e 3 milhões de dólares"],
  ["hi", "₹250 और $1", "250 रुपये और एक डॉलर"],
  // Units, per cent, fractions, ranges.
  [
    "es",
    "5 km, 1 km, 90 km/h, 30 m² y 25 %",
    "5 kilómetros, un kilómetro, 90 kilómetros por hora, 30 metros cuadrados y 25 %",
  ],
  ["fr", "5 kg, 20 °C et 3 Go", "5 kilos, 20 degrés Celsius et 3 gigaoctets"],
  ["it", "1 h, 2 h e 100 ml", "un'ora, 2 ore e 100 millilitri"],
  ["pt", "1/2 litro, 3/4 e 5–10 dias", "meio litro, três quartos e 5 a 10 dias"],
  ["hi", "5 किमी और 3 kg", "5 किलोमीटर और 3 किलो"],
  ["es", "2020-2024 y 555-1234", "2020 a 2024 y 555 a 1234"],
  // Ordinals, numbers of things, abbreviations, addresses, signs.
  ["es", "el 1.º y la 2ª", "el 1º y la 2ª"],
  ["fr", "le 2e et le 1er", "le 2ème et le 1er"],
  ["es", "n.º 5 y #3", "número 5 y número 3"],
  ["fr", "n° 5", "numéro 5"],
  [
    "es",
    "El Sr. Gómez, la Dra. Paz, etc. Luego nada.",
    "El señor Gómez, la doctora Paz, etcétera. | Luego nada.",
  ],
  ["es", "pan, vino, etc.", "pan, vino, etcétera."],
  ["fr", "M. Dupont et Mme Petit", "monsieur Dupont et madame Petit"],
  ["fr", "J. M. Coetzee", "J. M. Coetzee"],
  ["it", "il Sig. Rossi e la Dott.ssa Bianchi", "il signor Rossi e la dottoressa Bianchi"],
  ["pt", "o Sr. Silva mora na av. Brasil", "o senhor Silva mora na avenida Brasil"],
  ["hi", "डॉ. शर्मा", "डॉक्टर शर्मा"],
  ["es", "escribe a ana@correo.es", "escribe a ana arroba correo punto es"],
  ["fr", "https://exemple.fr/a-b", "exemple point fr barre a b"],
  ["es", "Pan & vino, 2 × 3 ≤ 7", "Pan y vino, 2 por 3 menor o igual que 7"],
  ["hi", "2 + 2 = 4", "2 प्लस 2 बराबर 4"],
  // Dates with the year first, in every language; a clock with seconds and a telephone number are none.
  ["es", "el 2024/12/25", "el 25 de diciembre de 2024"],
  ["es", "10:20:15 y 03-1234-5678", "10:20:15 y 03-1234-5678"],
  // Chinese: digits become characters.
  ["zh", "我有2个苹果和12本书。", "我有两个苹果和十二本书."],
  ["zh", "1234567人、1,005元和3.14", "一百二十三万四千五百六十七人, 一千零五元和三点一四"],
  ["zh", "100001305和110和20000和0", "一亿零一千三百零五和一百一十和二万和零"],
  ["zh", "1000000000000和12345678901234567", "一万亿和一二三四五六七八九零一二三四五六七"],
  ["zh", "2024-12-25开会，1999年5月", "二零二四年十二月二十五日 开会, 一九九九年五月"],
  ["zh", "24/12/25和2024.1.2", "二零二四年十二月二十五日 和 二零二四年一月二日"],
  ["zh", "10:30开会，9:05，8:00", "十点三十分 开会, 九点零五分, 八点"],
  ["zh", "$25、€3.50、¥1和$3亿", "二十五 美元, 三点五零 欧元, 一 元 和 三 亿美元"],
  ["zh", "25%，气温-5℃", "百分之二十五, 气温 负 五 摄氏度"],
  ["zh", "跑5km，买2kg，90km/h", "跑 五 公里, 买 两 公斤, 九十 公里每小时"],
  ["zh", "3/4、5-10天、5~10个", "四分之三, 五到十天, 五到十个"],
  ["zh", "第2个，2月2号", "第二个, 二月二号"],
  ["zh", "13812345678或010-8888666", "一三八一二三四五六七八或零一零 八八八八六六六"],
  ["zh", "iPhone 15和A4纸，007", "iPhone 十五和A四纸, 零零七"],
  ["zh", "２０２４年，٣٤", "二零二四年, 三十四"],
  ["zh", "写信到a@b.cn，2+2=4", "写信到a 艾特 b 点 cn, 二 加 二 等于 四"],
  ["zh", "他说：“你好！”她走了…", "他说: “你好!” | 她走了…"],
  ["zh", "12℃～18℃，3:2，10:20:15", "十二 摄氏度 到十八 摄氏度, 三比二, 十点二十分十五秒"],
  ["zh", "CA1234和64GB，15 128", "CA一二三四和六十四GB, 十五 一百二十八"],
  // Japanese: digits become katakana as they are pronounced, with their counters.
  ["ja", "3本と10本と100本。", "サンボンとジュッポンとヒャッポン."],
  ["ja", "2024-12-25、4月1日", "ニセンニジューヨネンジューニガツニジューゴニチ, シガツツイタチ"],
  ["ja", "9月20日と1日と8日間", "クガツハツカとイチニチとヨーカカン"],
  ["ja", "10:30と9:05と0:00", "ジュージサンジュップン と クジゴフン と レージ"],
  ["ja", "¥1,500、$3.50、€1", "センゴヒャクエン, サン ドル ゴジュー セント, イチ ユーロ"],
  ["ja", "25%、10%、1.5倍、0.5", "ニジューゴパーセント, ジュッパーセント, イッテンゴバイ, レーテンゴ"],
  ["ja", "1人と3人と4人、2つ", "ヒトリとサンニンとヨニン, フタツ"],
  ["ja", "8階、3階、6個、20歳", "ハッカイ, サンガイ, ロッコ, ニジュッサイ"],
  ["ja", "5km、-5℃、1/2、5〜10分", "ゴ キロメートル, マイナス ゴド, ニブンノイチ, ゴからジュップン"],
  [
    "ja",
    "12345円、1000万、3600、8000、1兆",
    "イチマンニセンサンビャクヨンジューゴエン, イッセンマン, サンゼンロッピャク, ハッセン, イッチョー",
  ],
  ["ja", "03-1234-5678", "ゼロサンノ イチニサンヨンノ ゴロクナナハチ"],
  ["ja", "７時間、４年生、14日", "シチジカン, ヨネンセー, ジューヨッカ"],
  ["ja", "18:00〜20:00、3:2、第2節", "ジューハチジ からニジュージ, サンタイニ, 第ニセツ"],
  [
    "ja",
    "三本、一人、十人、六百円、二〇二四年",
    "サンボン, ヒトリ, ジューニン, ロッピャクエン, ニセンニジューヨネン",
  ],
  [
    "ja",
    "四月一日、一億二千三百万円、十分な時間、三時十分",
    "シガツツイタチ, イチオクニセンサンビャクマンエン, 十分な時間, サンジジュップン",
  ],
  ["ja", "一通り、八百屋、一人称、二人前", "一通り, 八百屋, 一人称, ニニンマエ"],
  ["ja", "六本木、三日月、四日市、千歳", "六本木, 三日月, 四日市, 千歳"],
  // A language without a table.
  ["de", "25/12/2024 ٣", "25 12 2024 3"],
]

describe("spoken forms", () => {
  it.each(table)("%s: %s", (language, written, spoken) => {
    expect(said(written, language)).toBe(spoken)
  })
})

const anyText = fc.oneof(
  fc.string({ unit: "binary", maxLength: 300 }),
  fc.string({ unit: fc.constantFrom(..."0123456789.,:/-€$%°ºª kmhe²½٣२\u200f\u202e😀"), maxLength: 120 }),
)

describe("any text", () => {
  it.each(["es", "fr", "hi", "it", "ja", "pt", "zh", "de", "ar"])(
    "keeps its letters in %s, and no digit of another script",
    (language) => {
      fc.assert(
        fc.property(anyText, (text) => {
          const spoken = said(text, language)
          expect(spoken).not.toMatch(/(?![0-9])\p{Nd}|\p{Cf}|\p{Extended_Pictographic}/u)
          if (/[\p{L}\p{Nd}]/u.test(cleanText(text, language))) expect(spoken).toMatch(/[\p{L}\p{N}]/u)
        }),
      )
    },
  )

  it.each(["ja", "zh"])("has no digit left in %s", (language) => {
    fc.assert(
      fc.property(anyText, (text) => {
        expect(said(text, language)).not.toMatch(/\d/)
      }),
    )
  })

  it.each(["es", "fr", "hi", "it", "ja", "pt", "zh"])(
    "of 4,096 characters is read in linear time in %s",
    (language) => {
      for (const unit of [
        "1",
        "1.",
        "1 ",
        "a",
        "a.",
        "1/",
        "€",
        "€1",
        "-",
        "º",
        "1,2 ",
        "@a.",
        "\u064b",
        "。",
        "！字",
        "1年",
        "1-",
      ]) {
        const text = unit.repeat(Math.ceil(4096 / unit.length)).slice(0, 4096)
        expect(said(text, language).length).toBeLessThan(4096 * 20)
      }
    },
  )
})
