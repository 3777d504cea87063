// What a node gives up as its memory fills: three rungs over the share of its budget in use, each left a little lower
// than it was entered, so that a reading that wavers does not. Pure; see docs/operations.md for what each rung does.

/** `calm` below all rungs. */
export const rungs = ["calm", "lean", "busy", "full"] as const
export type Rung = (typeof rungs)[number]

/** Share of the memory budget at which each rung begins. */
const entered: Readonly<Record<Exclude<Rung, "calm">, number>> = { lean: 0.85, busy: 0.92, full: 0.95 }

/** How far below its beginning a rung is left. A guess: more than one request's memory, less than one rung. */
const slack = 0.03

/** The rung after a reading of `share`, from `now`. Climbs at once, as far as it must; descends past the slack. */
export const nextRung = (now: Rung, share: number): Rung => {
  let next: Rung = "calm"
  for (const rung of ["lean", "busy", "full"] as const) {
    const held = rungs.indexOf(now) >= rungs.indexOf(rung)
    if (share >= entered[rung] - (held ? slack : 0)) next = rung
  }
  return next
}

export const isAtLeast = (now: Rung, rung: Rung): boolean => rungs.indexOf(now) >= rungs.indexOf(rung)
