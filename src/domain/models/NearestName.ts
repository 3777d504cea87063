// Finds the known name that is most similar to a mistyped one, for error messages. Pure.

/** Edits (insert, delete, replace, or swap two neighbours) that change one text into the other. */
export const editDistance = (a: string, b: string): number => {
  let beforeLast: ReadonlyArray<number> = []
  let last = Array.from({ length: b.length + 1 }, (_, j) => j)
  for (let i = 1; i <= a.length; i++) {
    const row = [i]
    for (let j = 1; j <= b.length; j++) {
      const replaced = last[j - 1]! + (a[i - 1] === b[j - 1] ? 0 : 1)
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]
      row[j] = Math.min(replaced, last[j]! + 1, row[j - 1]! + 1, swapped ? beforeLast[j - 2]! + 1 : replaced)
    }
    beforeLast = last
    last = row
  }
  return last[b.length]!
}

/** Longer names are compared by their first characters: the work grows with the square of the length. */
const comparedCharacters = 100

const folded = (name: string): string =>
  name
    .slice(0, comparedCharacters)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "")

/** A shorter prefix matches too many names. */
const shortestBeginning = 3

/** A third of a name's characters; for short names 1 or 2. */
const allowedEdits = (name: string): number =>
  name.length < 5 ? 1 : Math.max(2, Math.floor(name.length / 3))

/**
 * The most similar known name. Undefined if about a third of its characters would have to change and the mistyped name
 * is not a prefix of it. Upper case, hyphens and underscores are ignored: `context_tokens` equals `contextTokens`.
 */
export const nearestName = (name: string, known: Iterable<string>): string | undefined => {
  const mistyped = folded(name)
  let nearest: string | undefined
  let least = Number.POSITIVE_INFINITY
  for (const candidate of known) {
    const right = folded(candidate)
    const distance = editDistance(mistyped, right)
    const isBeginning = mistyped.length >= shortestBeginning && right.startsWith(mistyped)
    if (distance < least && (isBeginning || distance <= allowedEdits(right))) {
      nearest = candidate
      least = distance
    }
  }
  return nearest
}

/** Known names listed if none is similar. A guess: a longer list is no better than the documentation. */
const listedNames = 12

/** `; did you mean "x"?`, or the known names if none is similar. */
export const suggestion = (name: string, known: ReadonlyArray<string>): string => {
  const nearest = nearestName(name, known)
  if (nearest !== undefined) return `; did you mean ${JSON.stringify(nearest)}?`
  if (known.length === 0) return "; none is allowed here"
  const more = known.length > listedNames ? " and others" : ""
  return `; allowed are ${known.slice(0, listedNames).join(", ")}${more}`
}
