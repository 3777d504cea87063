// What a server completed within the measured time, whenever it began: requests of the warm-up that end in it occupied the
// server during it, and requests that end later did not finish for it. Counting only requests that begin in it would make
// a closed loop of long requests look slow.
import type { Outcome } from "../client/Outcome.ts"

interface Rates {
  readonly completed: number
  readonly good: number
  readonly tokens: number
  /** Seconds of audio. */
  readonly audio: number
}

const none: Rates = { completed: 0, good: 0, tokens: 0, audio: 0 }

const plus = (sum: Rates, { measured }: Outcome, good: boolean): Rates =>
  measured === undefined
    ? sum
    : {
        completed: sum.completed + 1,
        good: sum.good + (good ? 1 : 0),
        tokens: sum.tokens + (measured.figures.tokens ?? 0),
        audio: sum.audio + (measured.figures.audio ?? 0),
      }

const over = ({ audio, completed, good, tokens }: Rates, ms: number): Rates => {
  const seconds = ms / 1000
  return {
    completed: completed / seconds,
    good: good / seconds,
    tokens: tokens / seconds,
    audio: audio / seconds,
  }
}

export class Throughput {
  readonly #windowMs: number
  #within = none
  #counted = none

  /** @param windowMs the measured time */
  constructor(windowMs: number) {
    this.#windowMs = windowMs
  }

  /** @param endMs from the start of the measured time */
  add(
    outcome: Outcome,
    ended: { readonly endMs: number; readonly counted: boolean; readonly good: boolean },
  ): void {
    if (ended.endMs >= 0 && ended.endMs <= this.#windowMs)
      this.#within = plus(this.#within, outcome, ended.good)
    if (ended.counted) this.#counted = plus(this.#counted, outcome, ended.good)
  }

  /**
   * A second's worth.
   * @param elapsedMs until the last request ended; shorter than the measured time if the run had its number of requests
   */
  perSecond(elapsedMs: number): Rates {
    const windowMs = Math.min(this.#windowMs, elapsedMs)
    // Requests longer than the measured time: an estimate from those that began in it.
    return this.#within.completed === 0 ? over(this.#counted, elapsedMs) : over(this.#within, windowMs)
  }
}
