// Limits the connections of a listener. A connection without a complete head can hold 64 KB for 12 s, so their number
// bounds the memory. WebSockets do not count: they hold no head and have limits of their own. Beyond half of the bound
// each address may open only a few a second, so that one address cannot take all of them. uWS does not report the
// address of a closed connection, so connections cannot be counted by address.
import { type IsTrusted, subscriberOf } from "#domain/access/ClientAddress.ts"
import { GcraLimiter } from "#domain/access/GcraLimiter.ts"
import { nowMs } from "./Deadlines.ts"

/** The allowance of one address while connections are scarce: a burst, and one per `everyMs`. Guesses. */
const scarceBurst = 64
const everyMs = 50
const maxAddresses = 10_000

export class ConnectionGate {
  private readonly maxConnections: number
  private readonly isTrusted: IsTrusted
  private readonly opened = new GcraLimiter({ burst: scarceBurst, forgiveMs: everyMs, maxAddresses })

  constructor(maxConnections: number, isTrusted: IsTrusted) {
    this.maxConnections = maxConnections
    this.isTrusted = isTrusted
  }

  /** True if a connection may stay. `open` is the number of open connections except WebSockets, this one included. */
  admits(address: string, open: number): boolean {
    if (open > this.maxConnections) return false
    if (open <= this.maxConnections / 2 || this.isTrusted(address)) return true
    const subscriber = subscriberOf(address)
    if (this.opened.waitMs(subscriber, nowMs()) > 0) return false
    this.opened.failed(subscriber, nowMs())
    return true
  }
}
