// The levels of a node's memory use: three levels above `calm`, by the used share of the memory budget. Each is left at
// a lower share than it is entered, so that a fluctuating reading does not switch back and forth. Pure.
// docs/operations.md says what each level does.

/** Ascending. */
export const memoryLevels = ["calm", "lean", "busy", "full"] as const
export type MemoryLevel = (typeof memoryLevels)[number]

/** Share of the memory budget at which each level begins. */
const entered: Readonly<Record<Exclude<MemoryLevel, "calm">, number>> = { lean: 0.85, busy: 0.92, full: 0.95 }

/** A level is left this far below its beginning. A guess: more than one request's memory, less than one level. */
const margin = 0.03

/**
 * The level after a reading of `share`, from the level `now`. Rises at once by any number of levels; falls past the
 * margin.
 */
export const nextLevel = (now: MemoryLevel, share: number): MemoryLevel => {
  let next: MemoryLevel = "calm"
  for (const level of ["lean", "busy", "full"] as const) {
    const held = memoryLevels.indexOf(now) >= memoryLevels.indexOf(level)
    if (share >= entered[level] - (held ? margin : 0)) next = level
  }
  return next
}

export const isAtLeast = (now: MemoryLevel, level: MemoryLevel): boolean =>
  memoryLevels.indexOf(now) >= memoryLevels.indexOf(level)
