// How often live sessions get a caption, and how many sessions an engine can serve, from the measured cost of their
// work (protocol 10.6). Pure.

/** Measured cost of live sessions on this machine. */
export interface LiveCost {
  /** Engine time of one caption, milliseconds. */
  readonly captionMs: number
  /**
   * Share of the engine that a speaker takes however seldom there is a caption: for finishing its pieces, or for all its audio where the model
   * transcribes in chunks. 0 if captions include it.
   */
  readonly fixedShare: number
}

/**
 * Share of the engine that live sessions may use. A guess: even at 1 no queue grows without bound, because a session
 * has at most one caption waiting; a tenth is left for final results and other requests.
 */
export const fullShare = 0.9

/**
 * If captions are expensive, a speaker gets them less often than requested, down to this share of the engine. A
 * compromise: at a sixth, four speakers and the finishing of their pieces fit.
 */
const modestShare = 1 / 6

/** Longest time between two captions, seconds, unless the client itself requested a longer one. */
const rarestSeconds = 2

/** The longest time between two captions of a session that requested one every `windowSeconds`. */
export const slowestSeconds = (windowSeconds: number, { captionMs }: LiveCost): number =>
  Math.max(windowSeconds, Math.min(rarestSeconds, captionMs / 1000 / modestShare))

/** Share of the engine that a speaker with a caption every `seconds` takes. */
const shareOf = (seconds: number, { captionMs, fixedShare }: LiveCost): number =>
  captionMs / 1000 / seconds + fixedShare

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)

/** Share of the engine that these speakers take; `windows` are the seconds between two captions of each. */
export const shareOfAll = (windows: ReadonlyArray<number>, cost: LiveCost): number =>
  sum(windows.map((seconds) => shareOf(seconds, cost)))

/** Share of the engine that a speaker takes with captions as seldom as allowed. */
export const seldomShareOf = (windowSeconds: number, cost: LiveCost): number =>
  shareOf(slowestSeconds(windowSeconds, cost), cost)

/** How many speakers with this window can be served at once, at least 1. */
export const speakersThatFit = (windowSeconds: number, cost: LiveCost): number =>
  Math.max(1, Math.floor(fullShare / seldomShareOf(windowSeconds, cost) + 1e-9))

/** Seconds until the next caption of the speaker with `windowSeconds`, beside the others of `windows`. */
export const paceOf = (windowSeconds: number, windows: ReadonlyArray<number>, cost: LiveCost): number => {
  const free = fullShare - windows.length * cost.fixedShare
  const captions = shareOfAll(windows, { ...cost, fixedShare: 0 })
  const slowest = slowestSeconds(windowSeconds, cost)
  if (captions <= free) return windowSeconds
  return free <= 0 ? slowest : Math.min(slowest, (windowSeconds * captions) / free)
}
