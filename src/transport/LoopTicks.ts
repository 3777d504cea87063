// The ticks of the event loop as a number, and work for the end of the current one. One of each listener; costs a timer
// of the loop only in ticks that ask.
type Work = () => void

export class LoopTicks {
  private count = 0
  private scheduled = false
  private waiting: Array<Work> = []

  /** The same number within a tick, another one afterwards. */
  get current(): number {
    this.schedule()
    return this.count
  }

  /** Runs `work` when uWS has delivered what this tick has of all connections. */
  afterwards(work: Work): void {
    this.waiting.push(work)
    this.schedule()
  }

  private schedule(): void {
    if (this.scheduled) return
    this.scheduled = true
    setImmediate(this.next)
  }

  private readonly next = (): void => {
    this.scheduled = false
    this.count++
    const { waiting } = this
    this.waiting = []
    for (const work of waiting) work()
  }
}
