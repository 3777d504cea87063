// Which loaded models give way to another one: the cheapest to load again, and no more than needed. Pure; asked by
// ModelRegistry when a claim does not fit.

export interface Evictable {
  readonly id: string
  /** What its going gives back on the device in question. */
  readonly sizeBytes: number
  /** How long its last load took: what its next request will wait. */
  readonly reloadMs: number
}

/** Models whose going frees `neededBytes`, cheapest first; undefined where all of them together would not do. */
export const victimsOf = (
  candidates: ReadonlyArray<Evictable>,
  neededBytes: number,
): ReadonlyArray<Evictable> | undefined => {
  const cheapestFirst = candidates.toSorted((a, b) => a.reloadMs - b.reloadMs || b.sizeBytes - a.sizeBytes)
  const chosen: Array<Evictable> = []
  let freedBytes = 0
  for (const candidate of cheapestFirst) {
    if (freedBytes >= neededBytes) break
    chosen.push(candidate)
    freedBytes += candidate.sizeBytes
  }
  if (freedBytes < neededBytes) return undefined
  // The last one may be large enough to spare some of those before it.
  return chosen.filter((candidate) => {
    if (freedBytes - candidate.sizeBytes < neededBytes) return true
    freedBytes -= candidate.sizeBytes
    return false
  })
}
