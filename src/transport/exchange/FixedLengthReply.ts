// Sends a large body of known length piece by piece, as the kernel accepts it and FairSendQueue grants it. A slow
// reader needs no copy of the body and is disconnected when it stalls. For bodies over PLAIN_BODY_BYTES.
import { Effect } from "effect"
import { nowMs, type Watched } from "../Deadlines.ts"
import { type FairSender, pieceBytes } from "../FairSendQueue.ts"
import { type Ending, type Exchange, renewAfterMs } from "./Exchange.ts"

export class FixedLengthReply implements Watched, Ending, FairSender {
  readonly #exchange: Exchange
  readonly #totalBytes: number
  #rest: Uint8Array
  #movedMs = nowMs()
  #renewedMs = this.#movedMs
  listedAt = -1
  #resume: () => void = () => {}

  constructor(exchange: Exchange, bytes: Uint8Array) {
    this.#exchange = exchange
    this.#rest = bytes
    this.#totalBytes = bytes.byteLength
    exchange.reply = this
  }

  /** Sends `head` and the body. Completes when uWS has everything, or the exchange is over. */
  send(head: () => void): Effect.Effect<void> {
    return Effect.callback((resume) => {
      this.#resume = () => resume(Effect.void)
      // Reads the client's address, which cannot be read once uWS has the whole body: perhaps within this call.
      this.#exchange.attach()
      this.#exchange.res.onWritable(this.proceed)
      this.#exchange.corked(() => {
        head()
        this.#step()
      })
      if (!this.#exchange.done) this.#exchange.listener.deadlines.watch(this)
    })
  }

  readonly proceed = (): void => this.#exchange.corked(this.#step)

  sweep(now: number): void {
    this.proceed()
    if (this.#exchange.done) return
    if (now - this.#movedMs >= this.#exchange.listener.settings.stallTimeoutMs) {
      this.#exchange.listener.counters.slowReadersCut++
      this.#exchange.cut()
    } else if (now - this.#renewedMs >= renewAfterMs) {
      this.#renewedMs = now
      this.#exchange.renewTimer()
    }
  }

  release(): void {
    this.#exchange.listener.sendQueue.leave(this)
    this.#exchange.listener.deadlines.unwatch(this)
    this.#resume()
  }

  readonly #step = (): void => {
    const { listener, res } = this.#exchange
    while (!this.#exchange.done && listener.sendQueue.maySend(this)) {
      const before = res.getWriteOffset()
      const [taken, complete] = res.tryEnd(this.#rest.subarray(0, pieceBytes), this.#totalBytes)
      if (complete) return this.#exchange.finish()
      const takenBytes = res.getWriteOffset() - before
      if (takenBytes > 0) this.#movedMs = nowMs()
      this.#rest = this.#rest.subarray(takenBytes)
      // uWS calls back when the kernel accepts more.
      if (!taken) return
    }
  }
}
