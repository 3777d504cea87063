// How many connections a listener takes. One that has sent no whole head yet can hold 64 KB for 12 s, so their number
// bounds what they hold. WebSockets are not counted: they hold no head, and what they cost is bounded where they are
// admitted. Beyond half of the bound each address may open a few a second, so that one address cannot take all places.
// uWS does not tell whose connection has ended, so connections cannot be counted by address. Used by UwsServer.
import { type IsTrusted, subscriberOf } from "#domain/access/ClientAddress.ts"
import { GcraLimiter } from "#domain/access/GcraLimiter.ts"
import { nowMs } from "./Deadlines.ts"

/** Of one address while connections are scarce: at once, and one in `everyMs`. Guesses. */
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

  /** Whether a connection may stay. `open` are those that are open and no WebSocket, this one included. */
  admits(address: string, open: number): boolean {
    if (open > this.maxConnections) return false
    if (open <= this.maxConnections / 2 || this.isTrusted(address)) return true
    const subscriber = subscriberOf(address)
    if (this.opened.waitMs(subscriber, nowMs()) > 0) return false
    this.opened.failed(subscriber, nowMs())
    return true
  }
}
