// Limits how many requests run before the event loop serves other connections. uWS delivers all requests that one read
// holds, so a connection that pipelines 15,000 of them would delay all others. The first few of a tick run at once; the
// others wait here in order of arrival. uWS closes a connection whose next request arrives while one of its own waits,
// so each connection has at most one in the queue.
import { nowMs } from "./Deadlines.ts"
import type { LoopTicks } from "./LoopTicks.ts"

/** Requests that run inside uWS's callbacks in one tick. At 50 µs each these are 1.6 ms. A guess. */
const atOnce = 32
/** Time spent on them, and again on waiting requests, per tick: of costlier ones, such as handshakes of conversations, fewer run. A guess. */
const sliceMs = 4

/** The parts of a request that decide when it runs. */
interface QueuedRequest {
  /** True if it ended while it waited. */
  readonly done: boolean
  /** True if it must not run within the callback that brought its head. */
  readonly deferred: boolean
}

export class RequestQueue<Request extends QueuedRequest> {
  readonly #ticks: LoopTicks
  readonly #run: (exchange: Request) => void
  #tick = -1
  #ran = 0
  #ranMs = 0
  #waiting: Array<Request> = []

  constructor(ticks: LoopTicks, run: (exchange: Request) => void) {
    this.#ticks = ticks
    this.#run = run
  }

  /** Runs the request now, within uWS's callback, or later in a tick of its own. */
  admit(exchange: Request): void {
    if (this.#tick !== this.#ticks.current) {
      this.#tick = this.#ticks.current
      this.#ran = 0
      this.#ranMs = 0
    }
    const runs = this.#ran < atOnce && this.#ranMs < sliceMs
    if (this.#waiting.length === 0 && runs && !exchange.deferred) {
      this.#ran++
      const beganMs = nowMs()
      this.#run(exchange)
      this.#ranMs += nowMs() - beganMs
      return
    }
    if (this.#waiting.length === 0) this.#ticks.afterwards(this.#runWaiting)
    this.#waiting.push(exchange)
  }

  readonly #runWaiting = (): void => {
    const untilMs = nowMs() + sliceMs
    let count = 0
    while (count < this.#waiting.length && nowMs() < untilMs) {
      const exchange = this.#waiting[count++] as Request
      if (!exchange.done) this.#run(exchange)
    }
    this.#waiting.splice(0, count)
    if (this.#waiting.length > 0) this.#ticks.afterwards(this.#runWaiting)
  }
}
