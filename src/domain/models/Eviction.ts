// Chooses the loaded models to unload for another model: the fastest to load again, and no more than needed. Pure.

export interface Evictable {
  readonly id: string
  /** Memory on the device in question that unloading it frees. */
  readonly sizeBytes: number
  /** Time of its last load, which its next request will wait. */
  readonly reloadMs: number
}

/**
 * Models whose unloading frees `neededBytes`, fastest to reload first. Undefined if all of them together are too small.
 */
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
  // The last one may be large enough to keep some of those before it.
  return chosen.filter((candidate) => {
    if (freedBytes - candidate.sizeBytes < neededBytes) return true
    freedBytes -= candidate.sizeBytes
    return false
  })
}
