// The known name that is most like a mistyped one, for messages. Pure.

/** Edits (insert, delete, replace, or swap two neighbours) that turn one text into the other. */
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

/** Names longer than this are compared by their first characters: the work grows with the square of the length. */
const comparedCharacters = 100

const folded = (name: string): string =>
  name
    .slice(0, comparedCharacters)
    .toLowerCase()
    .replace(/[^a-z0-9]/g, "")

/** A shorter beginning of a name says too little. */
const shortestBeginning = 3

/** A third of a name's characters; one of a short name, two of a middling one. */
const allowedEdits = (name: string): number =>
  name.length < 5 ? 1 : Math.max(2, Math.floor(name.length / 3))

/**
 * The nearest of the known names, or undefined where none is near: more than about a third of its characters would have to
 * change, and the mistyped one is not its beginning. Upper case, hyphens and underscores do not count:
 * `context_tokens` is `contextTokens`.
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

/** Names listed where none is near; a longer list helps no more than the documentation. A guess. */
const listedNames = 12

/** `; did you mean "x"?`, or the known names where none is near. */
export const suggestion = (name: string, known: ReadonlyArray<string>): string => {
  const nearest = nearestName(name, known)
  if (nearest !== undefined) return `; did you mean ${JSON.stringify(nearest)}?`
  if (known.length === 0) return "; none is allowed here"
  const more = known.length > listedNames ? " and others" : ""
  return `; allowed are ${known.slice(0, listedNames).join(", ")}${more}`
}
