// A counter of event-loop ticks, and callbacks for the end of the current tick. One for each listener. Only ticks in
// which it is used cost a timer.
type Work = () => void

export class LoopTicks {
  #count = 0
  #scheduled = false
  #waiting: Array<Work> = []

  /** Constant within a tick, different in the next. */
  get current(): number {
    this.#schedule()
    return this.#count
  }

  /** Runs `work` after uWS has delivered what arrived in this tick on all connections. */
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
    for (const work of waiting) work()
  }
}
