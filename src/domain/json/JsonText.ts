// A small JSON text to a value, in one go. Large ones are read from their bytes (JsonReader).
import { maxDepth, maxValues, type Parsed, problems } from "./JsonLimits.ts"
import { JsonReader } from "./JsonReader.ts"

/**
 * Largest text that is parsed in one go, bytes. The worst take 2 ms: objects that each have a key of their own, 1.2 µs for 13 bytes
 * (measured).
 */
export const smallBytes = 16 * 1024

/** How often any of these characters occurs, or one more than `most`. Costs less than to look at each character. */
const countOf = (characters: ReadonlyArray<string>, text: string, most: number): number => {
  let count = 0
  for (const character of characters)
    for (let at = text.indexOf(character); at >= 0; at = text.indexOf(character, at + 1))
      if (++count > most) return count
  return count
}

/** Keys, lists and objects of a text, or more: those inside of texts count as well. At most one more than `most`. */
export const countParts = (text: string, most: number): number => countOf([":", "{", "["], text, most)

/** The value, or what is wrong with it, as a text for the client. */
export const parseJson = (text: string): Parsed => {
  const mayBeRefused =
    countOf(["{", "["], text, maxDepth) > maxDepth ||
    (text.length > maxValues && countOf([","], text, maxValues) > maxValues)
  if (mayBeRefused)
    return new JsonReader(Buffer.from(text)).read(() => false) ?? { problem: problems.invalid }
  try {
    return { value: JSON.parse(text) }
  } catch {
    return { problem: problems.invalid }
  }
}
