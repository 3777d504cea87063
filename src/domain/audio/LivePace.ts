// How often live sessions get a caption, and how many sessions an engine follows, from what their work costs. Pure; asked
// by EngineLoad, which measures the costs.

/** What live sessions cost on this machine. */
export interface LiveCost {
  /** Engine time of one caption, milliseconds. */
  readonly captionMs: number
  /** Engine time that closing a speaker's pieces takes, as a share of the engine, 0 where captions include it. */
  readonly closingShare: number
}

/**
 * Share of the engine that live sessions may fill. A guess: no queue grows without bound even at 1, because a session
 * waits with one caption at most; a tenth is left for final results and other requests.
 */
export const fullShare = 0.9

/**
 * Where captions are dear, a speaker's may come less often than requested, until they take this share of the engine. A
 * compromise: with a sixth, four speakers and the closing of their pieces fit.
 */
const modestShare = 1 / 6

/** But never less often than this, seconds, unless the client itself requested fewer. */
const rarestSeconds = 2

/** The longest time between two captions of a session that requested one every `windowSeconds`. */
export const slowestSeconds = (windowSeconds: number, { captionMs }: LiveCost): number =>
  Math.max(windowSeconds, Math.min(rarestSeconds, captionMs / 1000 / modestShare))

/** Share of the engine that a speaker takes with a caption every `seconds`. */
const shareOf = (seconds: number, { captionMs, closingShare }: LiveCost): number =>
  captionMs / 1000 / seconds + closingShare

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)

/** Share of the engine that these speakers take; `windows` are the seconds between two captions of each. */
export const shareOfAll = (windows: ReadonlyArray<number>, cost: LiveCost): number =>
  sum(windows.map((seconds) => shareOf(seconds, cost)))

/** Whether that share of the engine follows all of them when each gets its captions as seldom as is allowed. */
export const fits = (windows: ReadonlyArray<number>, cost: LiveCost, share = fullShare): boolean =>
  windows.length <= 1 ||
  shareOfAll(
    windows.map((seconds) => slowestSeconds(seconds, cost)),
    cost,
  ) <= share

/** How many speakers with this window are followed at the same time, at least 1. */
export const speakersThatFit = (windowSeconds: number, cost: LiveCost): number =>
  Math.max(1, Math.floor(fullShare / shareOf(slowestSeconds(windowSeconds, cost), cost) + 1e-9))

/** Seconds until the next caption of the speaker with `windowSeconds`, beside the others of `windows`. */
export const paceOf = (windowSeconds: number, windows: ReadonlyArray<number>, cost: LiveCost): number => {
  const free = fullShare - windows.length * cost.closingShare
  const captions = shareOfAll(windows, { ...cost, closingShare: 0 })
  const slowest = slowestSeconds(windowSeconds, cost)
  if (captions <= free) return windowSeconds
  return free <= 0 ? slowest : Math.min(slowest, (windowSeconds * captions) / free)
}
