// Removes punctuation from text. Exact: every mark of Unicode's category P is removed except those listed here, and
// nothing else changes; letters keep their case. Pure. Works on the parts of a text one after the other.

/** Marks that are read aloud: percent, at, hash, slash, section, prime and similar ones. */
const spoken = /[%&@#/*§٪‰‱′″％＆＠＃／＊]/u
const apostropheOrHyphen = /['’‘＇\-‐‑－_]/u
/** As in Catalan "col·legi", Japanese and Chinese foreign names, Hebrew abbreviations. */
const betweenLetters = /[·・׳״]/u
/** Decimal and thousands separators, times, ranges. */
const betweenDigits = /[.,:٫٬．：–]/u

const blank = /\s/u
const markPattern = /\p{P}/u
const wordPattern = /[\p{L}\p{M}\p{N}]/u
const letter = /[\p{L}\p{M}]/u
const digit = /\p{N}/u
const capital = /\p{Lu}/u
const smallOrDigit = /[\p{Ll}\p{N}]/u

/** As in "example.com", "U.S." or "e.g.". A capital after the dot shows a sentence end without a space. */
const isDotInside = (before: string, after: string): boolean =>
  capital.test(before)
    ? capital.test(after) || smallOrDigit.test(after)
    : smallOrDigit.test(before) && smallOrDigit.test(after)

/** Neighbours are characters; empty at the ends of the text. */
const isKept = (mark: string, before: string, after: string): boolean => {
  if (apostropheOrHyphen.test(mark) && wordPattern.test(before) && wordPattern.test(after)) return true
  if (betweenLetters.test(mark) && letter.test(before) && letter.test(after)) return true
  if (betweenDigits.test(mark) && digit.test(before) && digit.test(after)) return true
  // The sign of a negative number.
  if (mark === "-" && digit.test(after)) return before === "" || blank.test(before)
  return mark === "." && isDotInside(before, after)
}

/** True for a mark whose neighbours decide whether it is removed. */
const isMark = (character: string): boolean => markPattern.test(character) && !spoken.test(character)

/** State between the parts of a text. Plain data. */
export interface Removal {
  /** The last character that was neither a blank nor a mark; empty at the start of the text. */
  readonly before: string
  /** Blanks and marks after it: the next character decides about them. */
  readonly pending: string
}

export const noText: Removal = { before: "", pending: "" }

/** Of a longer run of blanks and marks only the ends can matter. */
const longestPending = 64

const shortened = (run: ReadonlyArray<string>): string =>
  run.length <= longestPending
    ? run.join("")
    : [...run.slice(0, longestPending / 2), ...run.slice(-longestPending / 2)].join("")

/**
 * The next part of a text without its marks. If marks are removed between two words, one space is left. Blanks and
 * marks at the end of the part wait for the next one, so that the parts give the same as the whole text; those at the
 * end of the text are dropped.
 */
export const removePunctuation = (state: Removal, text: string): readonly [string, Removal] => {
  const characters = Array.from(state.pending + text)
  let decided = characters.length
  while (decided > 0 && (blank.test(characters[decided - 1]!) || isMark(characters[decided - 1]!))) decided--
  if (decided === 0) return ["", { before: state.before, pending: shortened(characters) }]
  let out = ""
  /** Blanks since the last character that was kept, and whether a mark was removed among them. */
  let blanks = ""
  let removed = false
  for (let at = 0; at < decided; at++) {
    const character = characters[at]!
    if (blank.test(character)) {
      blanks += character
    } else if (
      isMark(character) &&
      !isKept(character, characters[at - 1] ?? state.before, characters[at + 1]!)
    ) {
      removed = true
    } else {
      const isStart = out === "" && state.before === ""
      const gap = isStart && !blank.test(characters[0]!) ? "" : " "
      out += (removed ? gap : blanks) + character
      blanks = ""
      removed = false
    }
  }
  return [out, { before: characters[decided - 1]!, pending: shortened(characters.slice(decided)) }]
}

/** A whole text without its marks, and without the blanks at its end. */
export const withoutPunctuation = (text: string): string => removePunctuation(noText, text)[0]

/** True if a text has a mark that would be removed. */
export const hasPunctuation = (text: string): boolean => withoutPunctuation(text) !== text.trimEnd()
