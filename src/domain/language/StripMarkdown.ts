// Removes the quotes around a text and the marks of code and markdown, before the text is spoken and its length is
// counted (protocol 8.3). Pure.
//
// Chat models often write markdown, so this removes what is certainly markup and leaves every doubtful character:
//   quotes      one pair around the whole text, if that quote does not occur inside
//   fences      the ``` or ~~~ lines go, the code stays and is then text like any other
//   headings    "# " to "###### " at the start of a line, and closing #s
//   lists       "- ", "* ", "+ " at the start of a line, "[ ] " after it; "1. " only where two lines are numbered
//   quotations  "> " at the start of a line;   rules and underlines ("---", "***", "===") go with their line
//   tables      the line of dashes goes; rows next to it become "a, b"
//   links       [text](address) and images keep their text, <https://…> its address; [id]: https://… lines go
//   inline      `code`, *a*, _a_, **a**, __a__, ***a***, ~~a~~ keep what is inside
// HTML, backslash escapes and anything that spans lines stay as they are.
//
// The rules are applied until nothing changes, so cleaning a cleaned text changes nothing. Each pass is linear, and the
// work is bounded: the input's length is limited, and unrealistically deep nesting stays partly marked.

/** Longest input, as a multiple of the limit: markup is never 8 times as long as its text. A guess. */
const maxMarkupFactor = 8
/** Characters processed over all passes: 13 ms for the worst nesting found (measured), 60 passes over 4096. */
const workChars = 250_000

const fence = /^ {0,3}(?:`{3,}|~{3,})[ \t]*[\w+#.-]*$/
const rule = /^ {0,3}([-*_=])(?:[ \t]*\1){2,}$/
const definition = /^ {0,3}\[[^\]\n]+\]:[ \t]*<?(?:https?:\/\/|mailto:|[/#])\S*(?:[ \t]+["'(][^\n]*)?$/
const tableDashes = /^\|?[ \t]*:?-{2,}:?[ \t]*(?:\|[ \t]*:?-{2,}:?[ \t]*)*\|?$/
const headingPattern = /^ {0,3}#{1,6}[ \t]+(?=\S)/
const quotation = /^ {0,3}(?:>(?:[ \t]+|(?=>)|$))+/
const bullet = /^[ \t]*[-*+][ \t]+(?:\[[ xX]\][ \t]+)?(?=\S)/
const number = /^[ \t]*\d{1,3}[.)][ \t]+(?=\S)/

const wordPattern = "[\\p{L}\\p{M}\\p{N}]"
/** The same for scripts with spaces between words; in the others a mark may touch the next word: 这是**重点**内容. */
const spacedWord = `(?:(?![\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Hangul}])${wordPattern})`

/**
 * Pairs of one mark. It opens neither after a word (2*3*4, snake_case) nor after a backslash, and not before a space or
 * a closing character; closing follows the mirrored rule. There is no mark of its kind inside.
 */
const emphasis = (mark: string, run: string, word: string): RegExp =>
  new RegExp(
    `(?<!${word}|[${mark}\\\\])(${run})(?![\\s)\\]},;:!?^>=-])([^${mark}\\n]+)(?<![\\s(\\[{<^=\\\\])\\1(?!${word}|[${mark}])`,
    "gu",
  )
const emphases = [
  emphasis("*", "\\*{1,3}", spacedWord),
  emphasis("_", "_{1,3}", wordPattern),
  emphasis("~", "~~", spacedWord),
]
const letter = /[\p{L}\p{N}]/u

/** Not after a word or bracket: f[i](x) is code. */
const link =
  /(?<![\p{L}\p{N}\])])!?\[([^[\]\n]*)\]\([^()\s]+(?:\([^()\s]*\)[^()\s]*)?(?:[ \t]+"[^"\n]*")?\)/gu
const autolink = /<((?:https?:\/\/|mailto:)[^<>\s]+)>/g
const codePattern = /(?<!`)(`+)(?!`)([^`\n]+)\1(?!`)/g

const quoteMarks: Readonly<Record<string, string>> = {
  '"': '"',
  "'": "'",
  "“": "”",
  "„": "“",
  "‘": "’",
  "«": "»",
  "「": "」",
}
/** An apostrophe between letters is not a quote: 'I don't know'. */
const apostrophe = /(?<=\p{L})['’](?=\p{L})/gu

const withoutQuotes = (text: string): string => {
  const close = text.length < 2 ? undefined : quoteMarks[text[0]!]
  if (close === undefined || !text.endsWith(close)) return text
  const inside = text.slice(1, -1)
  const quotes = inside.replace(apostrophe, "")
  return quotes.includes(text[0]!) || quotes.includes(close) ? text : inside
}

const tableRow = (line: string): string =>
  line
    .replace(/^\||\|$/g, "")
    .split("|")
    .map((cell) => cell.trim())
    .join(", ")

/** The line without its marks. Undefined if it has nothing but marks. */
const withoutLineMarks = (line: string, numbered: boolean): string | undefined => {
  const trimmed = line.trimEnd()
  if (fence.test(trimmed) || rule.test(trimmed) || definition.test(trimmed)) return undefined
  const quoted = line.replace(quotation, "")
  if (headingPattern.test(quoted)) {
    const heading = quoted.replace(headingPattern, "").trimEnd()
    const hashes = /#*$/.exec(heading.slice(-7))![0].length
    const title = heading.slice(0, heading.length - hashes)
    return hashes > 0 && /[ \t]$/.test(title) ? title.trimEnd() : heading
  }
  const item = quoted.replace(bullet, "")
  return numbered ? item.replace(number, "") : item
}

const withoutBlockMarks = (text: string): string => {
  const lines = text.split("\n")
  const numbered = lines.filter((line) => number.test(line)).length >= 2
  const kept: Array<string> = []
  let inTable = false
  for (const [i, line] of lines.entries()) {
    const trimmed = line.trim()
    const dashes = (at: number) => {
      const candidate = lines[at]?.trim() ?? ""
      return candidate.includes("|") && tableDashes.test(candidate)
    }
    const wasTable: boolean = inTable
    inTable = trimmed.includes("|") && (wasTable || dashes(i) || dashes(i + 1))
    if (inTable) {
      if (!dashes(i)) kept.push(tableRow(trimmed))
      continue
    }
    const rest = withoutLineMarks(line, numbered)
    if (rest !== undefined) kept.push(rest)
  }
  return kept.join("\n")
}

const withoutInlineMarks = (text: string): string => {
  let rest = text
    .replace(codePattern, (_, __, code: string) => (code.trim() === "" ? code : code.trim()))
    .replace(link, "$1")
    .replace(autolink, "$1")
  for (const marks of emphases) {
    rest = rest.replace(marks, (all, _, inside: string) => (letter.test(inside) ? inside : all))
  }
  return rest
}

/** The text to speak, without surrounding space. Never longer than the input. */
export const cleanSpeechText = (input: string): string => {
  let text = input.trim()
  for (let work = 0; work < workChars; ) {
    work += text.length + 1
    const next = withoutInlineMarks(withoutBlockMarks(withoutQuotes(text))).trim()
    if (next === text) break
    text = next
  }
  return text
}

/** Unicode code points, the unit of the limit (a lone surrogate counts as one). */
export const codePointCount = (text: string): number => {
  let count = 0
  for (const _ of text) count++
  return count
}

/** The text to speak. Undefined if it has more than `maxCodePoints` after cleaning. */
export const speechTextWithin = (input: string, maxCodePoints: number): string | undefined => {
  if (input.length > maxCodePoints * maxMarkupFactor) return undefined
  const text = cleanSpeechText(input)
  return codePointCount(text) <= maxCodePoints ? text : undefined
}
