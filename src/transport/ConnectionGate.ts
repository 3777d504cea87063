// Which connections of a listener may stay. Where only trusted proxies may connect, those of other addresses are closed
// before a byte of them is read; loopback addresses are never refused for this.
//
// And it limits their number. A connection without a complete head can hold 64 KB for 12 s, so their number
// bounds the memory. WebSockets do not count: they hold no head and have limits of their own. Beyond half of the bound
// each address may open only a few a second, so that one address cannot take all of them. uWS does not report the
// address of a closed connection, so connections cannot be counted by address.
import { type IsTrusted, subscriberOf } from "#domain/access/ClientAddress.ts"
import { GcraLimiter } from "#domain/access/GcraLimiter.ts"
import { isLoopback } from "#domain/access/Loopback.ts"
import { nowMs } from "./Deadlines.ts"
import type { TransportCounters } from "./TransportCounters.ts"

/** The allowance of one address while connections are scarce: a burst, and one per `everyMs`. Guesses. */
const scarceBurst = 64
const everyMs = 50
const maxAddresses = 10_000

interface GateLimits {
  readonly maxConnections: number
  readonly isTrusted: IsTrusted
  /** Whether connections of addresses that are neither trusted nor loopback ones are closed. */
  readonly proxiesOnly: boolean
  /** Called with the address of the first connection that was closed for this. */
  readonly onUnlisted: (address: string) => void
}

export class ConnectionGate {
  readonly #limits: GateLimits
  readonly #counters: TransportCounters
  readonly #opened = new GcraLimiter({ burst: scarceBurst, forgiveMs: everyMs, maxAddresses })

  constructor(limits: GateLimits, counters: TransportCounters) {
    this.#limits = limits
    this.#counters = counters
  }

  /** True if a new connection may stay, which `counters.connections` holds already. Counts it if it may not. */
  admits(address: string): boolean {
    const { isTrusted, onUnlisted, proxiesOnly } = this.#limits
    if (proxiesOnly && !isTrusted(address) && !isLoopback(address)) {
      if (this.#counters.unlistedRefused++ === 0) onUnlisted(address)
      return false
    }
    if (this.#hasPlace(address)) return true
    this.#counters.connectionsRefused++
    return false
  }

  /** WebSockets do not count. */
  #hasPlace(address: string): boolean {
    const { isTrusted, maxConnections } = this.#limits
    const open = this.#counters.connections - this.#counters.webSockets
    if (open > maxConnections) return false
    if (open <= maxConnections / 2 || isTrusted(address)) return true
    const subscriber = subscriberOf(address)
    if (this.#opened.waitMs(subscriber, nowMs()) > 0) return false
    this.#opened.failed(subscriber, nowMs())
    return true
  }
}
