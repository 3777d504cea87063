// Word error rate: edits between two word sequences divided by the reference's length. Words are lower case letters and
// apostrophes, everything else is dropped.

export const wordsOf = (text: string): ReadonlyArray<string> =>
  text
    .toLowerCase()
    .replaceAll(/[^a-z' ]/g, "")
    .split(/\s+/)
    .filter((word) => word !== "")

/** Fewest insertions, deletions and substitutions that turn one sequence into the other. */
export const editDistance = (from: ReadonlyArray<string>, to: ReadonlyArray<string>): number => {
  let row = Array.from({ length: to.length + 1 }, (_, i) => i)
  for (const [i, word] of from.entries()) {
    const next = [i + 1]
    for (const [j, other] of to.entries()) {
      next.push(Math.min(row[j + 1]! + 1, next[j]! + 1, row[j]! + (word === other ? 0 : 1)))
    }
    row = next
  }
  return row.at(-1)!
}

export interface Heard {
  readonly reference: string
  readonly heard: string
}

/** Computed over all pairs together, so that long clips have more weight. */
export const wordErrorRate = (pairs: ReadonlyArray<Heard>): number => {
  let edits = 0
  let words = 0
  for (const { reference, heard } of pairs) {
    edits += editDistance(wordsOf(reference), wordsOf(heard))
    words += wordsOf(reference).length
  }
  return words === 0 ? 0 : edits / words
}
