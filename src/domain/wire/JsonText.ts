// JSON text to a value, refused before it is parsed if that would be expensive. Runs on the event loop and in the
// thread for large bodies, so it imports nothing.

/** Most bytes of a JSON body (protocol 1.2), `data:` URLs of pictures not counted. */
export const maxJsonBytes = 8_000_000

/**
 * Most commas of a body. Each value of a list or an object has one, and parsing costs by value, not by byte:
 * 8 MB of `0,0,0,…` took 170 ms of the event loop, 100,000 of them 4 ms (measured). Commas inside texts count as well.
 */
const maxCommas = 100_000

/**
 * Lists and objects inside each other. Requests nest ten levels deep, JSON Schemas of tools some more. Values that nest
 * thousands of levels deep make whatever walks them recurse: decoding takes minutes, and they cannot pass between threads.
 */
const maxDepth = 128

export type Parsed = { readonly value: unknown } | { readonly problem: string }

/** Whether the text has more than `most` of this character. */
const hasMoreThan = (most: number, character: string, text: string): boolean => {
  let count = 0
  for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1)) {
    if (++count > most) return true
  }
  return false
}

/**
 * Keys, lists and objects that the event loop parses in one go: up to 0.8 µs each (measured), many times the cost of a number or of
 * a character. So it never makes an object with more than `maxKeys` of JsonPieces.
 */
const quickParts = 8_000

/** Shorter texts cannot have so many. */
const quickChars = 2 * quickParts

/** Keys, lists and objects of a text, or more: those inside of texts count as well. At most one more than `most`. */
export const countParts = (text: string, most: number): number => {
  let count = 0
  for (const character of [":", "{", "["])
    for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1))
      if (++count > most) return count
  return count
}

/** Whether the event loop may parse the text, if it is not too long. */
export const isQuick = (text: string): boolean =>
  text.length < quickChars || countParts(text, quickParts) <= quickParts

/** False for most texts: so few brackets cannot nest too deep, wherever they stand. Costs less than to look at each character. */
const mayBeTooDeep = (text: string): boolean =>
  hasMoreThan(maxDepth / 2, "{", text) || hasMoreThan(maxDepth / 2, "[", text)

const QUOTE = 0x22
const BACKSLASH = 0x5c

/** The position behind the string that begins with the quote at `at`. */
const afterText = (json: string, at: number): number => {
  for (let end = json.indexOf('"', at + 1); end >= 0; end = json.indexOf('"', end + 1)) {
    let escapes = 0
    while (json.charCodeAt(end - 1 - escapes) === BACKSLASH) escapes++
    if (escapes % 2 === 0) return end + 1
  }
  return json.length
}

/** One level of nesting: where the present key of an object stands in the text, or the present index of a list. */
interface Level {
  readonly isList: boolean
  from: number
  to: number
  index: number
}

/** Steps of a path that a problem names. */
const namedSteps = 4
/** Characters of a key that a problem names. */
const namedChars = 40

const pathTo = (json: string, levels: ReadonlyArray<Level>): string =>
  levels
    .map(({ from, index, isList, to }) =>
      isList ? `[${index}]` : `.${json.slice(from, Math.min(to, from + namedChars))}`,
    )
    .join("")
    .slice(1)

/** The beginning of the path where the text nests too deep; undefined if it does not. Empty if its root is a list. */
const tooDeepAt = (json: string): string | undefined => {
  // The levels that a path names; the deeper ones are only counted.
  const levels: Array<Level> = []
  let depth = 0
  for (let at = 0; at < json.length; ) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) {
      const end = afterText(json, at)
      const level = levels[depth - 1]
      // A text before a colon is a key. Others are taken for one as well, until the key of the next value comes.
      if (level !== undefined) {
        level.from = at + 1
        level.to = end - 1
      }
      at = end
      continue
    }
    // `[` and `{`, `]` and `}`, `,`.
    if (code === 0x5b || code === 0x7b) {
      if (depth < namedSteps) {
        levels.length = depth
        levels.push({ isList: code === 0x5b, from: at, to: at, index: 0 })
      }
      if (++depth > maxDepth) return levels[0]?.isList === true ? "" : pathTo(json, levels)
    } else if (code === 0x5d || code === 0x7d) {
      // No valid JSON, and the parser stops here.
      if (--depth < 0) return undefined
    } else if (code === 0x2c) {
      const level = levels[depth - 1]
      if (level !== undefined) level.index++
    }
    at++
  }
  return undefined
}

/** The value, or what is wrong with the body, as a text for the client. */
export const parseJson = (text: string): Parsed => {
  if (hasMoreThan(maxCommas, ",", text)) return { problem: `has more than ${maxCommas} values` }
  const deep = mayBeTooDeep(text) ? tooDeepAt(text) : undefined
  if (deep !== undefined) {
    return { problem: `is nested more than ${maxDepth} levels deep${deep === "" ? "" : `, in ${deep}`}` }
  }
  try {
    return { value: JSON.parse(text) }
  } catch {
    return { problem: "is not valid JSON" }
  }
}
