// A counter of event-loop ticks, and callbacks for the end of the current tick. One for each listener. Only ticks in
// which it is used cost a timer.
import { nowMs } from "./Deadlines.ts"

type Work = () => void

/** Time for callbacks in one tick; those that are left run in the next. A guess: a quarter is for what a tick has besides. */
const sliceMs = 3

export class LoopTicks {
  #count = 0
  #scheduled = false
  #waiting: Array<Work> = []
  readonly #nowMs: () => number

  constructor(now: () => number = nowMs) {
    this.#nowMs = now
  }

  /** Constant within a tick, different in the next. */
  get current(): number {
    this.#schedule()
    return this.#count
  }

  /**
   * Runs `work` after uWS has delivered what arrived in this tick on all connections, in the order of the calls. Where much is
   * waiting, as when many sockets close at once, in one of the next ticks.
   */
  afterwards(work: Work): void {
    this.#waiting.push(work)
    this.#schedule()
  }

  #schedule(): void {
    if (this.#scheduled) return
    this.#scheduled = true
    setImmediate(this.#next)
  }

  readonly #next = (): void => {
    this.#scheduled = false
    this.#count++
    const waiting = this.#waiting
    this.#waiting = []
    const untilMs = this.#nowMs() + sliceMs
    let ran = 0
    while (ran < waiting.length && (ran === 0 || this.#nowMs() < untilMs)) waiting[ran++]?.()
    if (ran === waiting.length) return
    this.#waiting = [...waiting.slice(ran), ...this.#waiting]
    this.#schedule()
  }
}
