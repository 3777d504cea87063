// The knee of a server: the highest load that still holds an objective. Loads are tried one after the other, doubling from
// the first until one breaks the objective, then bisecting between the last that held and the first that did not. Pure
// but for the trial that it is given.

export interface KneeLimits {
  /** The first load that is tried; also the unit of a closed loop's steps. */
  readonly first: number
  readonly most: number
  /** The search ends when the two loads around the knee differ by less than this factor. */
  readonly precision: number
  /** Trials at most. */
  readonly trials: number
  /** Loads are whole numbers, such as connections. */
  readonly whole: boolean
}

interface Knee {
  /** The highest load that held the objective; undefined if none did. */
  readonly held: number | undefined
  /** The lowest load that did not; undefined if all did, so that the knee is higher than `limits.most`. */
  readonly broke: number | undefined
  readonly trials: number
}

/** Below the first load divided by this the search gives up. A guess. */
const lowestShare = 64

/**
 * The load to try next; undefined when the search is over. Of loads that hold above one that breaks, which noise can
 * cause, only those below the lowest that broke count.
 */
const nextLoad = (
  { first, most, precision, whole }: KneeLimits,
  held: number | undefined,
  broke: number | undefined,
): number | undefined => {
  const rounded = (load: number) => (whole ? Math.max(1, Math.round(load)) : load)
  if (held === undefined && broke === undefined) return Math.min(first, most)
  if (broke === undefined) return held! >= most ? undefined : Math.min(most, rounded(held! * 2))
  if (held === undefined) {
    const lower = whole ? Math.floor(broke / 2) : broke / 2
    return lower < (whole ? 1 : first / lowestShare) ? undefined : lower
  }
  if (broke / held <= precision) return undefined
  const middle = rounded(Math.sqrt(held * broke))
  return middle <= held || middle >= broke ? undefined : middle
}

/** @param holds tries a load; true if it held the objective */
export const findKnee = async (
  limits: KneeLimits,
  holds: (load: number) => Promise<boolean>,
): Promise<Knee> => {
  let held: number | undefined
  let broke: number | undefined
  let trials = 0
  while (trials < limits.trials) {
    const load = nextLoad(limits, held, broke)
    if (load === undefined) break
    trials++
    if (await holds(load)) held = load
    else broke = load
  }
  return { held, broke, trials }
}
