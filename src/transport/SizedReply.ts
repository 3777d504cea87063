// A large body of known length on its way out: handed to uWS piece by piece as the kernel takes it, so that a slow
// reader costs no copy of it, and cut when it stalls. Created by ReplyWriter for bodies over PLAIN_BODY_BYTES.
import { Effect } from "effect"
import { nowMs, type Watched } from "./Deadlines.ts"
import { type Ending, type Exchange, RENEW_AFTER_MS } from "./Exchange.ts"

export class SizedReply implements Watched, Ending {
  private readonly exchange: Exchange
  private readonly totalBytes: number
  private rest: Uint8Array
  private movedMs = nowMs()
  private renewedMs = this.movedMs
  private resume: () => void = () => {}

  constructor(exchange: Exchange, bytes: Uint8Array) {
    this.exchange = exchange
    this.rest = bytes
    this.totalBytes = bytes.byteLength
    exchange.reply = this
  }

  /** Sends `head` and the body; completes when uWS has all of it, or the exchange is over. */
  send(head: () => void): Effect.Effect<void> {
    return Effect.callback((resume) => {
      this.resume = () => resume(Effect.void)
      this.exchange.res.onWritable(() => {
        this.exchange.corked(this.step)
        return true
      })
      this.exchange.corked(() => {
        head()
        this.step()
      })
      if (!this.exchange.done) this.exchange.listener.deadlines.watch(this)
    })
  }

  sweep(now: number): void {
    this.exchange.corked(this.step)
    if (this.exchange.done) return
    if (now - this.movedMs >= this.exchange.listener.settings.stallTimeoutMs) {
      this.exchange.listener.counters.slowReadersCut++
      this.exchange.cut()
    } else if (now - this.renewedMs >= RENEW_AFTER_MS) {
      this.renewedMs = now
      this.exchange.renewTimer()
    }
  }

  release(): void {
    this.exchange.listener.deadlines.unwatch(this)
    this.resume()
  }

  private readonly step = (): void => {
    const { res } = this.exchange
    if (this.exchange.done) return
    const before = res.getWriteOffset()
    const [, complete] = res.tryEnd(this.rest, this.totalBytes)
    if (complete) return this.exchange.finish()
    const taken = res.getWriteOffset() - before
    if (taken === 0) return
    this.movedMs = nowMs()
    this.rest = this.rest.subarray(taken)
  }
}
