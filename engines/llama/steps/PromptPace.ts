// How many tokens of a prompt one native call evaluates. Pure.
//
// A prompt alone gets calls of the most efficient size. Beside running replies this is a compromise, because the replies
// wait for each call: with share s of the time, the gaps between their tokens become 1/(1-s) times as long and the
// prompt's first token comes after 1/s times its time alone. Both hold if a token costs the same in a small call.
// If small calls cost more, both cannot hold, and the chosen size misses both by the same factor.
import type { CostCurve } from "./CostCurve.ts"

/**
 * Milliseconds. A cancel waits for the running call, so calls are at most this long where that costs little: an engine
 * has to stop within 100 ms of a cancel (protocol 1.9).
 */
export const cancelMs = 100

/** What "costs little" means: cost of a token, as a multiple of its cost at the most efficient size. */
const dearest = 1.05

/** Least tokens of a call, unless the prompt has fewer left: kernels are several times slower per row below 8 rows. */
const fewest = 8

/** Milliseconds. A prompt alone tries a size that was never measured, unless the call should take longer. A guess. */
const trialMs = 1000

/** Calls of a prompt alone between two trials of the next larger size, which correct old measurements. A guess. */
const probeEvery = 16

interface Beside {
  /** Prompts that wait for their first token, including this one. */
  readonly prompts: number
  readonly replies: number
  /** Milliseconds in which each of these replies gets one token. */
  readonly repliesMs: number
}

/** What a round of calls has for prompts: tokens of each call, and milliseconds of all of them. The first call may take longer. */
export interface RoundPart {
  readonly size: number
  readonly budgetMs: number
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

  /** `share`: the part of the time for prompts if there are as many replies; above 0 and below 1. */
  constructor(options: { readonly share: number; readonly costs: CostCurve }) {
    this.#share = options.share
    this.#costs = options.costs
    this.#sizes = sizesUpTo(options.costs.largest)
  }

  /** Tokens of a prompt's next call while no reply runs. */
  nextAlone(): number {
    const best = this.#bestAlone()
    const larger = this.#costs.sizes.filter((size) => size > best)
    const unknown = larger.find((size) => !this.#costs.isMeasured(size))
    if (unknown !== undefined && this.#costs.expectedMs(unknown) <= trialMs) return unknown
    return ++this.#callsAlone % probeEvery === 0 ? (larger[0] ?? best) : best
  }

  /** The prompts' part of the next round beside running replies. */
  beside(beside: Beside): RoundPart {
    const { odds, stated } = this.#oddsOf(beside)
    const { repliesMs } = beside
    return {
      size: this.nextBeside(beside),
      budgetMs: Math.min(odds * repliesMs, Math.max(stated * repliesMs, cancelMs)),
    }
  }

  /** Tokens of a prompt's next call beside running replies. */
  nextBeside(beside: Beside): number {
    const { odds, stated } = this.#oddsOf(beside)
    const { repliesMs } = beside
    const alone = this.#bestAlone()
    const tokenAlone = this.#tokenMs(alone)
    let best = alone
    let least = Number.POSITIVE_INFINITY
    for (const size of this.#sizes) {
      const elapsed = this.#costs.expectedMs(size)
      // In a burst, calls (and so cancels) do not become longer than they are for a prompt alone.
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
   * For prompts that waited before the first of the running replies began: calls of the size of a prompt alone, or larger ones of the same price
   * that fit into the round. The gaps of these replies may be as long as they are beside a prompt once all of them run. `allMs`: milliseconds in
   * which each then gets one token; `repliesMs`: in which those do that run now.
   */
  inBurst(allMs: number, repliesMs: number): RoundPart {
    const gapMs = allMs / (1 - this.#share)
    const budgetMs = Math.max(gapMs - repliesMs, cancelMs)
    const alone = this.#bestAlone()
    const size = this.#sizes.findLast(
      (each) =>
        this.#costs.expectedMs(each) <= budgetMs && this.#tokenMs(each) <= dearest * this.#tokenMs(alone),
    )
    return { size: Math.max(alone, size ?? alone), budgetMs }
  }

  /** Ratio of the prompts' time to the replies'. `stated`: by the share alone. */
  #oddsOf({ prompts, replies }: Beside) {
    const stated = this.#share / (1 - this.#share)
    // If prompts outnumber replies, they get proportionally more time, so that a burst of prompts is not slowed down by
    // the few that have just begun to reply.
    return { stated, odds: stated * Math.max(1, prompts / replies) }
  }

  #tokenMs(size: number): number {
    return this.#costs.expectedMs(size) / size
  }

  /** The largest size within the time of a cancel whose tokens are cheap; otherwise the smallest whose tokens are. */
  #bestAlone(): number {
    const cheapest = this.#sizes.reduce(
      (least, size) => Math.min(least, this.#tokenMs(size)),
      Number.POSITIVE_INFINITY,
    )
    const cheap = this.#sizes.filter((size) => this.#tokenMs(size) <= dearest * cheapest)
    return cheap.findLast((size) => this.#costs.expectedMs(size) <= cancelMs) ?? cheap[0]!
  }
}

/** A call may be this much longer than planned, so that a prompt does not end with a call of few tokens. A guess. */
const stretch = 1.15

/** Kernels work on multiples of this many rows. */
const rowMultiple = 8

/** Tokens of the next call: about `size`, such that the remaining calls have equal sizes. */
export const evenTake = (pending: number, size: number): number => {
  const calls = Math.ceil(pending / (size * stretch))
  const take = Math.ceil(pending / calls)
  return Math.min(pending, take < 2 * rowMultiple ? take : Math.ceil(take / rowMultiple) * rowMultiple)
}
