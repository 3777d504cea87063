// What a language writes in signs and says in words: dates, times, money, units, abbreviations. One table a language, data only.
// eSpeak reads the digits themselves, except in Chinese and Japanese; what else it reads well stands in each table.

/** A number with a noun: all of "un euro", and the noun alone, "euros". */
export interface Counted {
  readonly one: string
  readonly many: string
}

export interface Currency extends Counted {
  /** The hundredth part. Absent if amounts are said as decimal numbers. */
  readonly cent?: Counted
}

export interface SpokenForms {
  /** The mark before decimals. The other one of "." and "," is between thousands, and so is a space. */
  readonly decimal: "," | "."
  /** Words are written without spaces between them, and short dates begin with the year: Chinese and Japanese. */
  readonly spaceless?: true
  /** Writes the digits that are left as words. Absent if the front end reads digits. */
  readonly numbers?: (sentence: string) => string
  /** Between the digits of a decimal number, where eSpeak leaves the mark out. */
  readonly point?: string
  /** Of January to December. */
  readonly months: ReadonlyArray<string>
  /** Day and year as digits without leading zeros. */
  readonly date: (day: string, month: string, year: string) => string
  /** Hours and minutes as digits without leading zeros; undefined if eSpeak reads "10:30" well. */
  readonly time?: (hours: string, minutes: string) => string
  /** By sign. */
  readonly currencies: Readonly<Record<string, Currency>>
  /** Words of thousands and millions behind an amount, and what is said between them and the currency. */
  readonly scales: { readonly words: string; readonly of: string }
  /** Between the whole amount and the cents. */
  readonly and: string
  /** By symbol. */
  readonly units: Readonly<Record<string, Counted>>
  /** "1/2" → its words. */
  readonly fractions: Readonly<Record<string, string>>
  /** The last letters of ordinal numbers, without those that Unicode's normal form makes of "º" and "ª"; what eSpeak reads. */
  readonly ordinals: ReadonlyArray<readonly [RegExp, string]>
  readonly minus: string
  /** Between two numbers: "5–10". */
  readonly to: string
  /** Before a number: "No. 5". */
  readonly number: string
  /** Inside addresses of pages and mail. */
  readonly address: { readonly dot: string; readonly at: string; readonly slash: string }
  /** Single characters that eSpeak leaves out, or reads in another language. */
  readonly signs: Readonly<Record<string, string>>
  /** Before the text is cut into sentences, because a full stop in them ends none. */
  readonly abbreviations: ReadonlyArray<readonly [RegExp, string]>
}

/** The rows of a table, of which each ends with a semicolon or its line. */
const rowsOf = (table: string): ReadonlyArray<string> =>
  table
    .split(/[;\n]/)
    .map((row) => row.trim())
    .filter((row) => row !== "")

/** A table by the first cell of its rows, whose cells have "=" between them. */
const byFirst = <A>(table: string, valueOf: (...cells: ReadonlyArray<string>) => A) =>
  Object.fromEntries(
    rowsOf(table).map((row) => {
      const [first = "", ...others] = row.split("=")
      return [first, valueOf(...others)] as const
    }),
  )

/** Rows of "symbol=one=many"; the plural is the last word with "s" where it is left out. */
export const counted = (table: string): Readonly<Record<string, Counted>> =>
  byFirst(table, (one = "", many) => ({ one, many: many ?? `${one.slice(one.indexOf(" ") + 1)}s` }))

/** Rows of "sign=one=many=one cent=cents". */
export const moneys = (table: string): Readonly<Record<string, Required<Currency>>> =>
  byFirst(table, (one = "", many = "", cent = "", cents = "") => ({
    one,
    many,
    cent: { one: cent, many: cents },
  }))

/** Rows of "symbol=noun" in a language whose nouns have no plural. */
export const uncounted = (table: string): Readonly<Record<string, Counted>> =>
  byFirst(table, (noun = "") => ({ one: `1 ${noun}`, many: noun }))

/** Rows of "written=said". */
export const saidOf = (table: string): Readonly<Record<string, string>> => byFirst(table, (said = "") => said)

/** Rows of a sign, a space and its words. */
export const signsOf = (table: string): Readonly<Record<string, string>> =>
  Object.fromEntries(rowsOf(table).map((row) => [row.slice(0, 1), row.slice(2)]))

/** Rows of "written=said": the written form stands alone, with or without a capital. A full stop at its end may end a sentence. */
export const abbreviated = (table: string): ReadonlyArray<readonly [RegExp, string]> =>
  Object.entries(saidOf(table)).map(([written, said]) => {
    const escaped = written.replace(/[.*+?^${}()|[\]\\]/g, "\\$&").replaceAll(" ", "\\s?")
    const first = escaped[0]!
    const either = first === first.toUpperCase() ? first : `[${first}${first.toUpperCase()}]`
    return [
      new RegExp(
        `(?<![\\p{L}\\p{N}.]|\\p{Lu}\\.\\s)${either}${escaped.slice(1)}(?![\\p{L}\\p{M}\\p{N}])`,
        "gu",
      ),
      said,
    ] as const
  })
