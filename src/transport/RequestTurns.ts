// How many requests the event loop handles before it looks at other connections again. uWS calls for one request after
// the other as long as its read holds any, so one connection that pipelines 15,000 of them would keep everybody waiting
// for all. The first few of a tick run at once; the others wait here, in order of arrival. uWS closes a connection whose
// next request comes while one of its own waits, so at most one of each connection ever does.
// Used by UwsServer, which says how a request is run.
import { nowMs } from "./Deadlines.ts"
import type { Exchange } from "./Exchange.ts"

/** Requests that run inside uWS's callbacks in one tick. At 50 µs each these are 1.6 ms. A guess. */
const atOnce = 32
/** How long those that wait are run before the loop turns. A guess. */
const sliceMs = 4

export class RequestTurns {
  private readonly run: (exchange: Exchange) => void
  private ran = 0
  private waiting: Array<Exchange> = []
  private scheduled = false

  constructor(run: (exchange: Exchange) => void) {
    this.run = run
  }

  /** Runs it now, within uWS's callback, or later in a tick of its own. */
  admit(exchange: Exchange): void {
    this.schedule()
    // A chunked body may end elsewhere than uWS thinks: what follows in the same read must find its request unanswered.
    if (this.waiting.length > 0 || this.ran >= atOnce || exchange.closesConnection) {
      this.waiting.push(exchange)
      return
    }
    this.ran++
    this.run(exchange)
  }

  private schedule(): void {
    if (this.scheduled) return
    this.scheduled = true
    setImmediate(this.turn)
  }

  private readonly turn = (): void => {
    this.scheduled = false
    this.ran = 0
    const untilMs = nowMs() + sliceMs
    let count = 0
    while (count < this.waiting.length && nowMs() < untilMs) {
      const exchange = this.waiting[count++] as Exchange
      if (!exchange.done) this.run(exchange)
    }
    this.waiting.splice(0, count)
    if (this.waiting.length > 0) this.schedule()
  }
}
