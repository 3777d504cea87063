// Cuts long runs of a text before it reaches llama.cpp's pre-tokenizers. Most of these are regular expressions of the C++
// library, which recurses once for each character of a match: 23,500 letters, digits or spaces without a break overflow a
// stack of 8 MiB and end the process (measured with 3.21.1: gpt-4o, tekken, deepseek, falcon, and vocabularies that name
// none). A text without such a run stays whole, so its tokens do not change.

/** Longest run of characters without white space, or of white space. A match has at most two: a sixth of what crashes. */
export const longestRun = 4_096

const isSpace = (code: number): boolean =>
  code === 32 || (code >= 9 && code <= 13) || (code > 127 && /\s/.test(String.fromCharCode(code)))

const letter = /\p{L}/u
/** A character that ends a match of letters in every pre-tokenizer. An apostrophe does not (`don't`). */
const endsLetters = /[^\s\p{L}\p{N}\p{M}'’]/u

/** The second half of a surrogate pair. */
const isTrailing = (code: number): boolean => code >= 0xdc00 && code <= 0xdfff

/** Where to cut a run that goes on beyond `at`: before a sign that follows a letter, else at `at`. Never inside a character. */
const cutBefore = (text: string, from: number, at: number): number => {
  for (let i = at; i > from + (at - from) / 2; i--)
    if (letter.test(text.charAt(i - 1)) && endsLetters.test(text.charAt(i))) return i
  return isTrailing(text.charCodeAt(at)) ? at - 1 : at
}

/** The pieces of the text, in order. One piece if no run is longer than `bound` characters. */
export const piecesOf = (text: string, bound: number = longestRun): ReadonlyArray<string> => {
  if (text.length <= bound) return [text]
  const pieces: Array<string> = []
  let pieceFrom = 0
  let runFrom = 0
  let inSpace = isSpace(text.charCodeAt(0))
  for (let i = 1; i < text.length; i++) {
    const space = isSpace(text.charCodeAt(i))
    if (space !== inSpace) {
      inSpace = space
      runFrom = i
    } else if (i - runFrom >= bound) {
      const cut = inSpace ? i : cutBefore(text, runFrom, i)
      pieces.push(text.slice(pieceFrom, cut))
      pieceFrom = cut
      runFrom = cut
    }
  }
  return [...pieces, text.slice(pieceFrom)]
}
