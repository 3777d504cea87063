// The English front end as a table of written and spoken forms; and properties of any text.
import { describe, expect, it } from "@effect/vitest"
import fc from "fast-check"
import { cleanText } from "#engines/shared/text/CleanText.ts"
import { englishText } from "#engines/shared/text/EnglishText.ts"
import { cardinal, ordinal, year } from "#engines/shared/text/Numbers.ts"
import { sentences } from "#engines/shared/text/Sentences.ts"

const said = (text: string, accent: "american" | "british" = "american"): string =>
  [...sentences(cleanText(text))].map((sentence) => englishText(sentence, accent)).join(" | ")

const table: ReadonlyArray<readonly [string, string]> = [
  // whole numbers, decimals, versions
  [
    "100 and 12,345 and 1,000,000",
    "one hundred and twelve thousand three hundred forty five and one million",
  ],
  ["3.14 and .5", "three point one four and zero point five"],
  ["version 1.2.3", "version one point two point three"],
  ["agent 007, box 0123", "agent zero zero seven, box zero one two three"],
  ["-5 or −3", "minus five or minus three"],
  ["A4 and MP3", "A four and MP three"],
  ["1,23", "one, twenty three"],
  [
    "12345678901234567890123",
    "one two three four five six seven eight nine zero one two three four five six seven eight nine zero one two three",
  ],
  ["٣٤ and १२", "thirty four and twelve"],
  // ordinals, years, decades
  [
    "the 1st, 2nd, 3rd, 12th, 21st and 100th",
    "the first, second, third, twelfth, twenty first and one hundredth",
  ],
  [
    "in 1984, 1905, 1900, 2000, 2005, 2025",
    "in nineteen eighty four, nineteen oh five, nineteen hundred, two thousand, two thousand five, twenty twenty five",
  ],
  ["the 1980s, the '90s", "the nineteen eighties, the nineties"],
  ["from 2010–2015", "from twenty ten to twenty fifteen"],
  // dates
  ["on 2024-03-15", "on March fifteenth, twenty twenty four"],
  ["on 03/15/2024", "on March fifteenth, twenty twenty four"],
  ["on March 15, 2024 we met", "on March fifteenth, twenty twenty four we met"],
  ["on 4 July.", "on July fourth."],
  ["Mar. 5th was cold", "March fifth was cold"],
  // times
  ["at 3:45 pm", "at three forty five P M"],
  ["at 3pm or 7 a.m. today", "at three P M or seven A M today"],
  ["at 12:00, 09:05, 14:30", "at twelve o'clock, nine oh five, fourteen thirty"],
  ["it took 1:02:03", "it took one oh two and three seconds"],
  // money
  [
    "$5, $1, $3.50, $0.99, $1.01",
    "five dollars, one dollar, three dollars and fifty cents, ninety nine cents, one dollar and one cent",
  ],
  ["£2.5 million and €1,000", "two point five million pounds and one thousand euros"],
  ["5€ and -$3", "five euros and minus three dollars"],
  ["$5k, $2bn", "five thousand dollars, two billion dollars"],
  // measures
  ["50% of 5 km", "fifty percent of five kilometers"],
  ["1 kg, 60 mph, 5GHz, 100MB", "one kilogram, sixty miles per hour, five gigahertz, one hundred megabytes"],
  ["-5 °C", "minus five degrees Celsius"],
  ["1500 km", "one thousand five hundred kilometers"],
  ["5'10\" tall", "five foot ten tall"],
  // fractions and ranges
  ["1/2, 3/4, 2/3 and 24/7", "one half, three quarters, two thirds and twenty four seven"],
  ["½ cup, 2½ cups", "one half cup, two and a half cups"],
  ["5-10 people won 3-2", "five to ten people won three to two"],
  ["10⁶ and m²", "ten to the power of six and m squared"],
  // telephone numbers
  ["call 555-123-4567", "call five five five, one two three, four five six seven"],
  ["call +1 (555) 123-4567", "call plus one, five five five, one two three, four five six seven"],
  // abbreviations
  ["Dr. Smith met Mr. Jones and Mrs. Day.", "Doctor Smith met Mister Jones and Missis Day."],
  ["12 Main St. in St. Louis", "twelve Main Street in Saint Louis"],
  ["at 5 Elm Dr. and 6 Oak Ave. now", "at five Elm Drive and six Oak Avenue now"],
  ["e.g. this, i.e. that, etc.", "for example, this, that is, that, etcetera."],
  ["the U.S.A. and the U.S. economy", "the U S A and the U S economy"],
  ["World War II, Chapter IV", "World War two, Chapter four"],
  ["J. R. Smith", "J R Smith"],
  ["No. 5 and #6", "number five and number six"],
  // signs and addresses
  ["AT&T, a + b = c, 5 < 6", "AT and T, a plus b equals c, five less than six"],
  ["and/or", "and or or"],
  ["mail me@x.com", "mail me at x dot com"],
  ["see https://www.example.com/a.", "see www dot example dot com slash a."],
  ["a – b -- c", "a — b — c"],
  ["wait... what?!?! no!!!", "wait… | what?! | no!!"],
  ["“Quoted” and ‘single’", "“Quoted” and 'single'"],
  // what has no sound
  ["hi 😀👍🏽 there 🇨🇦", "hi there"],
  ["zero\u200bwidth and \u202eturned", "zerowidth and turned"],
  ["ends\u0000here", "ends here"],
  ["Z̸̡̢̛a̶l̵g̸o", "Zalgo"],
]

describe("English front end", () => {
  it.each(table)("%j is said %j", (written, spoken) => {
    expect(said(written).normalize("NFD").replace(/\p{M}/gu, "")).toBe(spoken)
  })

  it("puts British words in British places", () => {
    expect(said("on 03/04/2024 he paid £101", "british")).toBe(
      "on the third of April, twenty twenty four he paid one hundred and one pounds",
    )
    expect(said("2005 and 1,005", "british")).toBe("two thousand and five and one thousand and five")
  })

  it("leaves nothing for the phonemiser to stumble over, whatever the text", () => {
    fc.assert(
      fc.property(
        fc.oneof(
          fc.string({ unit: "binary", maxLength: 300 }),
          fc.string({ unit: fc.constantFrom(..."0123456789.,:/-$€%' apmstndrh\n#°½²"), maxLength: 80 }),
        ),
        fc.constantFrom("american" as const, "british" as const),
        (text, accent) => {
          expect(said(text, accent)).toMatch(/^[\p{Script=Latin}\p{Script=Greek}\p{M}'\s;:,.!?—…"()“”|-]*$/u)
        },
      ),
      { numRuns: 400 },
    )
  })

  it("speaks every digit of its input", () => {
    fc.assert(
      fc.property(fc.nat(), (value) => {
        // Reading the words back gives the number.
        expect(read(cardinal(String(value), "british"))).toBe(value)
        expect(read(cardinal(String(value), "american"))).toBe(value)
      }),
    )
    expect(ordinal("1000000", "american")).toBe("one millionth")
    expect(year("1066", "british")).toBe("ten sixty six")
  })
})

const wordNumbers: Readonly<Record<string, number>> = Object.fromEntries(
  "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
    .split(" ")
    .map((word, value) => [word, value] as const)
    .concat(
      "twenty thirty forty fifty sixty seventy eighty ninety"
        .split(" ")
        .map((word, i) => [word, 20 + 10 * i]),
    ),
)
const scalePattern: Readonly<Record<string, number>> = { thousand: 1e3, million: 1e6, billion: 1e9 }

const read = (words: string): number => {
  let total = 0
  let group = 0
  for (const word of words.split(" ")) {
    if (word === "and") continue
    if (word === "hundred") group *= 100
    else if (scalePattern[word] !== undefined) {
      total += group * scalePattern[word]
      group = 0
    } else group += wordNumbers[word]!
  }
  return total + group
}
