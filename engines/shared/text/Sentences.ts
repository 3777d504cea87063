// Clean text → sentences, lazily, so that the first piece of a long text is ready as soon as that of a short one. A
// missed boundary only makes a sentence longer, a false one makes a wrong pause: in doubt there is none.

/** Never end a sentence with their full stop: a name or a number follows. */
const titles = new Set(
  "mr mrs ms dr prof st sr jr rev hon capt lt col gen sgt gov sen rep mt ft no vs fig figs eq vol ed approx dept est".split(
    " ",
  ),
)

/** End a sentence only if a capital letter follows. */
const others = new Set(
  "e.g i.e a.m p.m etc inc ltd co corp ave rd blvd jan feb mar apr jun jul aug sep sept oct nov dec u.s u.k ph.d cf al".split(
    " ",
  ),
)

/** Longest sentence in characters; bounds the work before the first sound. A guess. */
const maxCharacters = 400

const ending = /[.!?…]+["”')\]]*(?=\s|$)|\n\s*\n|\n(?=\s*(?:[-*•‣◦]|\d{1,3}[.)])\s)/g

/** Sentences in order; together they contain every character of `text` except white space and list bullets. */
export function* sentences(text: string): Generator<string> {
  for (let start = 0; start < text.length; ) {
    const end = nextEnd(text, start)
    yield* parts(text.slice(start, end))
    start = end
  }
}

const nextEnd = (text: string, start: number): number => {
  ending.lastIndex = start
  for (let match = ending.exec(text); match !== null; match = ending.exec(text)) {
    const end = match.index + match[0].length
    if (match[0] !== "." || !isAbbreviated(text, start, match.index)) return end
  }
  return text.length
}

/** True if the full stop at `dot` belongs to the word before it. */
const isAbbreviated = (text: string, start: number, dot: number): boolean => {
  const word = /[\p{L}\d.]*$/u.exec(text.slice(Math.max(start, dot - 12), dot))?.[0] ?? ""
  const following = /\S/u.exec(text.slice(dot + 1, dot + 40))?.[0] ?? ""
  if (following === "") return false
  // The number of a list item.
  if (/^\d{1,3}$/.test(word) && text.slice(start, dot).trim() === word) return true
  const lower = word.toLowerCase()
  if (titles.has(lower)) return lower !== "no" || /\d/.test(following)
  if (/^\p{Lu}$/u.test(word)) return /^\p{Lu}$/u.test(following) && word !== "I"
  const initials = /^(?:\p{L}\.)+\p{L}$/u.test(word)
  return (others.has(lower) || initials) && !/\p{Lu}/u.test(following)
}

const bullet = /^\s*(?:[-*•‣◦]|(\d{1,3})[.)])\s+/

/** One sentence without line breaks, cut if it is too long. A line or paragraph without a final mark gets a full stop. */
function* parts(raw: string): Generator<string> {
  const line = raw
    .replace(bullet, (_, number: string | undefined) => (number === undefined ? "" : `${number}, `))
    .replace(/([^\s.!?…,;:—])\s*\n\s*$/, "$1.")
    .replace(/\s+/g, " ")
    .trim()
  let rest = line
  while (rest.length > maxCharacters) {
    const cut = cutBefore(rest, maxCharacters)
    yield rest.slice(0, cut).trim()
    rest = rest.slice(cut).trim()
  }
  if (rest !== "") yield rest
}

/** The last clause mark, else the last space that has no digit beside it, else the limit itself. */
const cutBefore = (text: string, limit: number): number => {
  const head = text.slice(0, limit)
  const clause = Math.max(
    head.lastIndexOf("; "),
    head.lastIndexOf(": "),
    head.lastIndexOf(", "),
    head.lastIndexOf("—"),
  )
  if (clause > 0) return clause + 1
  for (let i = limit - 1; i > 0; i--) {
    if (text[i] === " " && !/\d/.test(`${text[i - 1]}${text[i + 1]}`)) return i
  }
  // Never between the two halves of a surrogate pair.
  return /[\udc00-\udfff]/.test(text[limit]!) ? limit - 1 : limit
}
