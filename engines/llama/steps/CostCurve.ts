// The expected duration of one native call by its size (prompt tokens, or replies that get one token each), learnt from
// the calls made so far. Pure: the caller measures, and gives the clock.
//
// Duration is not proportional to size: kernels work on 8, 16 or 64 rows and are several times slower per row below
// (0.2 B parameters, Q8_0, one thread: 1 token 10 ms, 2 tokens 22 ms, 16 tokens 36 ms, 64 tokens 107 ms). So one
// duration is kept for each power of two, with interpolation between them.
//
// Two things are kept apart. The least duration of each size is what a call takes while nothing else runs: other programs can
// only make a call longer, so a disturbance of any length leaves it as it was. Durations from a measurement or a file are replaced by those of
// the first calls of requests, which take longer: they have a context, and their tokens are delivered. The pace is how much longer recent calls took,
// whatever their size; it is forgotten within seconds, so that the figures of a quiet machine are back soon after a disturbance,
// also at sizes that were not called meanwhile.
import type { CallDurations } from "#domain/threads/CallCosts.ts"

/** Calls that make up the pace; their median counts, so a few disturbed calls change nothing. A guess. */
export const paceCalls = 7

/** Milliseconds after which a call says nothing about the pace any more. A guess. */
export const paceMs = 10_000

/** So many recent calls of a size say more about it than the pace of other sizes. A guess. */
export const callsOfSize = 3

/**
 * Milliseconds after which a least duration that was not reached again is forgotten, or twice as many: the machine has changed, or
 * sequences have become longer. More than a disturbance lasts that is worth ignoring. A guess.
 */
const leastForMs = 1_800_000

/**
 * A call below this part of the least duration of its size shows that the durations were measured on a busy machine, so the other sizes
 * are expected to be too long by the same factor until they are called again. Smaller differences are noise. A guess.
 */
const muchLess = 0.75

/** While recent calls take this many times as long as on a quiet machine, the first call of a size says little about it. A guess. */
const muchMore = 1.5

/**
 * The least of so many calls of requests replaces a measured duration. Without it a size that only looks cheap would be preferred for ever:
 * with one reply a call, one model of 3 MB gave 0.6 of the tokens of 16 replies a call (2026-11-27). A guess.
 */
const callsOfRequests = 8

/** Milliseconds a unit where nothing was measured yet: the 3 ms a token of a small model on a slow processor. A guess. */
const unknownMs = 3

/** Lower bound of a duration in milliseconds, because ratios of durations are computed here. */
const leastMs = 0.001

/** Below the smallest measured size the duration is this power of the size: between proportional (1) and constant (0). */
const belowExponent = 0.5

interface Least {
  ms: number
  /** Least duration since `sinceMs`; it replaces `ms` when `ms` is forgotten. */
  lately: number
  sinceMs: number
  calledMs: number
  /** True if `ms` was concluded from calls of another size, or from one on a busy machine: the next call replaces it. */
  guessed: boolean
  /** Until `ms` is one of requests: how many of their calls there were, and the least duration of those. */
  trial: { calls: number; ms: number } | undefined
}

interface Call {
  readonly size: number
  readonly ms: number
  readonly atMs: number
}

export class CostCurve {
  readonly #sizes: ReadonlyArray<number>
  readonly #nowMs: () => number
  readonly #least: Array<Least | undefined>
  /** The newest last, at most `paceCalls`. */
  #recent: ReadonlyArray<Call> = []
  /** The same for each size. */
  readonly #recentOf: Array<ReadonlyArray<Call>>

  /** `largest`: the largest size. */
  constructor(largest: number, nowMs: () => number = () => performance.now()) {
    const sizes = [1]
    while (sizes.at(-1)! * 2 < largest) sizes.push(sizes.at(-1)! * 2)
    this.#sizes = largest > 1 ? [...sizes, largest] : sizes
    this.#nowMs = nowMs
    this.#least = this.#sizes.map(() => undefined)
    this.#recentOf = this.#sizes.map(() => [])
  }

  get largest(): number {
    return this.#sizes.at(-1)!
  }

  /** The powers of two at which durations are kept, and the largest size. */
  get sizes(): ReadonlyArray<number> {
    return this.#sizes
  }

  /** Whether a call of about this size was observed. */
  isMeasured(size: number): boolean {
    return this.#least[this.#nearest(size)] !== undefined
  }

  /** What is worth keeping: the least duration of each size that was called. */
  kept(): CallDurations {
    return this.#sizes.flatMap((size, at) => {
      const least = this.#least[at]
      return least === undefined || least.guessed ? [] : [[size, least.ms] as const]
    })
  }

  /** Takes these durations for the least ones of their sizes, if they are sizes of this curve, and forgets the pace. */
  take(kept: CallDurations): void {
    const nowMs = this.#nowMs()
    this.#recent = []
    for (const [size, ms] of kept) {
      const at = this.#sizes.indexOf(size)
      if (at >= 0)
        this.#least[at] = { ...leastOf(ms, nowMs), trial: { calls: 0, ms: Number.POSITIVE_INFINITY } }
    }
  }

  /** One call of this size took `elapsedMs`. */
  observe(size: number, measuredMs: number): void {
    const nowMs = this.#nowMs()
    const elapsedMs = Math.max(leastMs, measuredMs)
    const at = this.#nearest(size)
    const gridMs = this.#atGrid(at, size, elapsedMs)
    const pace = this.#pace()
    const call = { size, ms: elapsedMs, atMs: nowMs }
    this.#recent = [...this.#recent.slice(1 - paceCalls), call]
    this.#recentOf[at] = [...this.#recentOf[at]!.slice(1 - paceCalls), call]
    const least = this.#least[at]
    if (least === undefined || least.guessed) {
      // Beside guesses alone the pace says nothing.
      const bound = this.#leastPossible(at)
      const busy = pace > muchMore && bound > 0
      this.#least[at] = {
        ...leastOf(busy ? Math.min(gridMs, Math.max(gridMs / pace, bound)) : gridMs, nowMs),
        guessed: busy,
      }
      return
    }
    if (gridMs < least.ms * muchLess) this.#guessOthers(at, gridMs, nowMs)
    if (nowMs - least.sinceMs > leastForMs) {
      least.ms = least.lately
      least.lately = gridMs
      least.sinceMs = nowMs
    }
    least.lately = Math.min(least.lately, gridMs)
    least.ms = Math.min(least.ms, gridMs)
    least.calledMs = nowMs
    const { trial } = least
    if (trial === undefined) return
    trial.ms = Math.min(trial.ms, gridMs)
    if (++trial.calls < callsOfRequests) return
    least.ms = trial.ms
    least.lately = trial.ms
    least.trial = undefined
  }

  /** Milliseconds of a call of this size at the present pace. */
  expectedMs(size: number): number {
    return this.quietMs(size) * this.#pace()
  }

  /**
   * What calls of this size took lately, or what is expected where there were few. For choosing between sizes: other work on the machine
   * lengthens calls of some sizes more than of others, which the pace does not tell.
   */
  latelyMs(size: number): number {
    const calls = this.#since(this.#recentOf[this.#nearest(size)]!)
    if (calls.length < callsOfSize) return this.expectedMs(size)
    const [quietMs, each] = [this.quietMs(size), calls.map((call) => call.ms / this.quietMs(call.size))]
    return quietMs * median(each)
  }

  /** Milliseconds on a quiet machine: measured, interpolated, or extrapolated from the nearest measured size. */
  quietMs(size: number): number {
    let below = -1
    let above = -1
    for (const [index, gridSize] of this.#sizes.entries()) {
      if (this.#least[index] === undefined) continue
      if (gridSize <= size) below = index
      if (gridSize >= size && above < 0) above = index
    }
    if (below < 0 && above < 0) return unknownMs * size
    if (above < 0) return (this.#atMost(below) * size) / this.#sizes[below]!
    if (below < 0) return this.#atMost(above) * (size / this.#sizes[above]!) ** belowExponent
    if (above === below) return this.#atMost(below)
    const [from, to] = [this.#sizes[below]!, this.#sizes[above]!]
    const part = (size - from) / (to - from)
    return this.#atMost(below) * (1 - part) + this.#atMost(above) * part
  }

  /** How many times longer than on a quiet machine recent calls took: their median, 1 if there were none. */
  #pace(): number {
    const calls = this.#since(this.#recent)
    return calls.length === 0 ? 1 : median(calls.map(({ ms, size }) => ms / this.quietMs(size)))
  }

  #since(calls: ReadonlyArray<Call>): ReadonlyArray<Call> {
    const fromMs = this.#nowMs() - paceMs
    return calls.filter(({ atMs }) => atMs >= fromMs)
  }

  /** What a call of the kept size would have taken where one of a size near it took so long: at least and at most in proportion. */
  #atGrid(at: number, size: number, elapsedMs: number): number {
    const gridSize = this.#sizes[at]!
    const ratio = this.quietMs(gridSize) / this.quietMs(size)
    const inProportion = gridSize / size
    return elapsedMs * Math.min(Math.max(ratio, Math.min(1, inProportion)), Math.max(1, inProportion))
  }

  #guessOthers(at: number, ms: number, nowMs: number): void {
    const factor = ms / this.#least[at]!.ms
    for (const [index, least] of this.#least.entries()) {
      if (index === at || least === undefined || nowMs - least.calledMs < paceMs) continue
      least.ms = Math.min(least.ms, Math.max(least.ms * factor, this.#shareOf(ms, at, index)))
      least.guessed = true
    }
  }

  /**
   * The least that a call of the size at `index` can take where one of the size at `of` takes so long: a larger call not less, a smaller one not
   * less than its share. Without it guess upon guess, about sizes that are not called, would come near 0.
   */
  #shareOf(ms: number, of: number, index: number): number {
    return ms * Math.min(1, this.#sizes[index]! / this.#sizes[of]!)
  }

  /** The same by all durations that are not guessed; 0 if there are none. */
  #leastPossible(index: number): number {
    return this.#least.reduce(
      (most, least, at) =>
        least === undefined || least.guessed ? most : Math.max(most, this.#shareOf(least.ms, at, index)),
      0,
    )
  }

  /** The duration at `index`, at most that of any larger size: a larger value was a disturbed measurement. */
  #atMost(index: number): number {
    let ms = Number.POSITIVE_INFINITY
    for (const least of this.#least.slice(index)) if (least !== undefined) ms = Math.min(ms, least.ms)
    return ms
  }

  /** Index of the nearest kept size by ratio: 48 belongs to 64, not to 32. */
  #nearest(size: number): number {
    let nearest = 0
    for (const [index, gridSize] of this.#sizes.entries())
      if (Math.abs(Math.log(gridSize / size)) <= Math.abs(Math.log(this.#sizes[nearest]! / size)))
        nearest = index
    return nearest
  }
}

const leastOf = (elapsedMs: number, nowMs: number): Least => {
  const ms = Math.max(leastMs, elapsedMs)
  return { ms, lately: ms, sinceMs: nowMs, calledMs: nowMs, guessed: false, trial: undefined }
}

/** Of an even number, the lower one of the two in the middle. */
const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)]!
