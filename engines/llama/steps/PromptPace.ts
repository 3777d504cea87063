// How many tokens of a prompt one native call evaluates. Called by StepPlan. Pure.
//
// Alone, a prompt takes calls as large as pay. Beside running replies there is a compromise, because the replies wait
// for each call: with the share s of the time, the gaps between their tokens become 1/(1-s) times as long and the
// prompt's first token comes after 1/s times its time alone. Both hold where a token costs the same in a small call.
// Where small calls are dear, both cannot hold, and the size is chosen that misses both by the same factor.
import type { CostCurve } from "./CostCurve.ts"

/**
 * A cancel waits for the call under way, so calls are this short where that costs little: an engine has to have stopped
 * 100 ms after a cancel (the specification).
 */
const cancelMs = 100

/** That little: a token may take this many times what it takes at the best size. */
const dearest = 1.05

/** No call of fewer tokens, unless the prompt has no more: kernels are several times slower per row below 8 rows. */
const fewest = 8

/** A size never measured is tried by a prompt alone, unless a call of it should take longer than this. A guess. */
const trialMs = 1000

/** Every so many calls of a prompt alone the next larger size is tried, so that an old measurement is corrected. A guess. */
const probeEvery = 16

/**
 * Prompts that came together get this many times the stated odds beside those of them that reply already. With the default
 * share that is 8/9 of the time: the last of them has its first token after 9/8 of their time alone.
 */
const burst = 4

export interface Beside {
  /** Prompts that wait for their first token, this one included. */
  readonly prompts: number
  readonly replies: number
  /** Milliseconds in which each of these replies gets a token. */
  readonly repliesMs: number
}

/** 8, 10, 12, 14, 16, 20, … 64, 80, 96, … up to `largest`. */
const sizesUpTo = (largest: number): ReadonlyArray<number> => {
  const sizes: Array<number> = []
  for (let size = fewest; size < largest; size += 2 ** Math.floor(Math.log2(size)) / 4) sizes.push(size)
  return [...sizes, largest]
}

export class PromptPace {
  readonly #share: number
  readonly #costs: CostCurve
  readonly #sizes: ReadonlyArray<number>
  #callsAlone = 0

  /** `share`: of the time, for prompts beside as many replies; above 0 and below 1. */
  constructor(options: { readonly share: number; readonly costs: CostCurve }) {
    this.#share = options.share
    this.#costs = options.costs
    this.#sizes = sizesUpTo(options.costs.largest)
  }

  /** Tokens of the next call of a prompt while no reply runs. */
  nextAlone(): number {
    const best = this.#bestAlone()
    const larger = this.#costs.sizes.filter((size) => size > best)
    const unknown = larger.find((size) => !this.#costs.isMeasured(size))
    if (unknown !== undefined && this.#costs.expectedMs(unknown) <= trialMs) return unknown
    return ++this.#callsAlone % probeEvery === 0 ? (larger[0] ?? best) : best
  }

  /** Tokens of the next call of a prompt beside running replies. */
  nextBeside({ prompts, replies, repliesMs }: Beside): number {
    // Prompts that outnumber the replies get the time of as many more, so that a burst of them is not slowed down for
    // the few that have just begun to reply.
    const stated = this.#share / (1 - this.#share)
    const odds = stated * Math.max(1, prompts / replies)
    const alone = this.#bestAlone()
    const tokenAlone = this.#tokenMs(alone)
    let best = alone
    let least = Number.POSITIVE_INFINITY
    for (const size of this.#sizes) {
      const elapsed = this.#costs.expectedMs(size)
      // A burst does not make calls, and with them cancels, longer than they are alone.
      if (size > alone && elapsed > stated * repliesMs) break
      const round = repliesMs + elapsed
      const gaps = round / repliesMs / (1 + odds)
      const firstToken = round / size / tokenAlone / (1 + 1 / odds)
      const missed = Math.max(gaps, firstToken)
      if (missed >= least) continue
      least = missed
      best = size
    }
    return best
  }

  /**
   * Size of the calls of prompts that were waiting before the first of the running replies began, and the time of these
   * calls until each reply gets a token.
   */
  inBurst(repliesMs: number): { readonly size: number; readonly leftMs: number } {
    const stated = this.#share / (1 - this.#share)
    return { size: this.#bestAlone(), leftMs: burst * stated * repliesMs }
  }

  #tokenMs(size: number): number {
    return this.#costs.expectedMs(size) / size
  }

  /** The longest call within the time of a cancel whose tokens are cheap, or else the shortest call whose tokens are. */
  #bestAlone(): number {
    const cheapest = this.#sizes.reduce(
      (least, size) => Math.min(least, this.#tokenMs(size)),
      Number.POSITIVE_INFINITY,
    )
    const cheap = this.#sizes.filter((size) => this.#tokenMs(size) <= dearest * cheapest)
    return cheap.findLast((size) => this.#costs.expectedMs(size) <= cancelMs) ?? cheap[0]!
  }
}

/** Calls may be this much longer than planned, so that a prompt does not end with a call of few tokens. A guess. */
const stretch = 1.15

/** Rows that kernels like to have. */
const rowMultiple = 8

/** Tokens of the next call: at most about `size`, and such that the calls that follow have as many. */
export const evenTake = (pending: number, size: number): number => {
  const calls = Math.ceil(pending / (size * stretch))
  const take = Math.ceil(pending / calls)
  return Math.min(pending, take < 2 * rowMultiple ? take : Math.ceil(take / rowMultiple) * rowMultiple)
}
