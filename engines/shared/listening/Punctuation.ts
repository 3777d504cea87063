// Text without punctuation, for requests that forbid it: Whisper itself has no such switch. Pure.

// Kept: apostrophes and hyphens between letters or digits, points and commas between digits, and signs that are
// read aloud (percent, ampersand, at, hash, slash, asterisk).
const BETWEEN_LETTERS = /[’'\-‐‑]/u
const BETWEEN_DIGITS = /[.,:]/u
const SPOKEN = /[%&@#/*٪]/u

const isWord = (character: string | undefined) =>
  character !== undefined && /[\p{L}\p{M}\p{N}]/u.test(character)
const isDigit = (character: string | undefined) => character !== undefined && /\p{N}/u.test(character)

/** Leading and trailing spaces are kept as they were, so that segments still join. */
export const withoutPunctuation = (text: string): string => {
  const characters = Array.from(text)
  const kept = characters.map((character, i) => {
    if (!/\p{P}/u.test(character) || SPOKEN.test(character)) return character
    const before = characters[i - 1]
    const after = characters[i + 1]
    if (BETWEEN_LETTERS.test(character) && isWord(before) && isWord(after)) return character
    if (BETWEEN_DIGITS.test(character) && isDigit(before) && isDigit(after)) return character
    return " "
  })
  const inner = kept.join("").replaceAll(/\s+/gu, " ").trim()
  if (inner === "") return ""
  return `${/^\s/u.test(text) ? " " : ""}${inner}${/\s$/u.test(text) ? " " : ""}`
}
