// What a node gives up as its memory fills: three memoryLevels over the share of its budget in use, each left a little lower
// than it was entered, so that a reading that wavers does not. Pure; see docs/operations.md for what each rung does.

/** `calm` below all memoryLevels. */
export const memoryLevels = ["calm", "lean", "busy", "full"] as const
export type MemoryLevel = (typeof memoryLevels)[number]

/** Share of the memory budget at which each rung begins. */
const entered: Readonly<Record<Exclude<MemoryLevel, "calm">, number>> = { lean: 0.85, busy: 0.92, full: 0.95 }

/** How far below its beginning a rung is left. A guess: more than one request's memory, less than one rung. */
const slack = 0.03

/** The rung after a reading of `share`, from `now`. Climbs at once, as far as it must; descends past the slack. */
export const nextLevel = (now: MemoryLevel, share: number): MemoryLevel => {
  let next: MemoryLevel = "calm"
  for (const rung of ["lean", "busy", "full"] as const) {
    const held = memoryLevels.indexOf(now) >= memoryLevels.indexOf(rung)
    if (share >= entered[rung] - (held ? slack : 0)) next = rung
  }
  return next
}

export const isAtLeast = (now: MemoryLevel, rung: MemoryLevel): boolean =>
  memoryLevels.indexOf(now) >= memoryLevels.indexOf(rung)
