// JSON text to a value, refused before it is parsed if that would be expensive. Runs on the event loop and in the
// thread for large bodies, so it imports nothing.

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

const hasTooManyValues = (text: string): boolean => {
  let commas = 0
  for (let at = text.indexOf(","); at >= 0; at = text.indexOf(",", at + 1)) {
    if (++commas > maxCommas) return true
  }
  return false
}

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

const isTooDeep = (json: string): boolean => {
  let depth = 0
  for (let at = 0; at < json.length; ) {
    const code = json.charCodeAt(at)
    if (code === QUOTE) {
      at = afterText(json, at)
      continue
    }
    // `[` and `{`, `]` and `}`.
    if (code === 0x5b || code === 0x7b) {
      if (++depth > maxDepth) return true
    } else if (code === 0x5d || code === 0x7d) depth--
    at++
  }
  return false
}

/** The value, or what is wrong with the body, as a text for the client. */
export const parseJson = (text: string): Parsed => {
  if (hasTooManyValues(text)) return { problem: `has more than ${maxCommas} values` }
  if (isTooDeep(text)) return { problem: `is nested more than ${maxDepth} levels deep` }
  try {
    return { value: JSON.parse(text) }
  } catch {
    return { problem: "is not valid JSON" }
  }
}
