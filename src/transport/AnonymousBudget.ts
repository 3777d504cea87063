// The budget of requests without a valid credential per address (protocol 4.4). Such requests cost nothing, and a few
// thousand a second would take a whole core. A response is counted when it has ended; the budget is checked before a
// request without any credential runs. A request that brings a credential is never refused here, whatever other clients
// at its address do.

import { clientAddress, type IsTrusted, subscriberOf } from "#domain/access/ClientAddress.ts"
import { GcraLimiter } from "#domain/access/GcraLimiter.ts"
import type { RequestContext } from "#http/RequestContext.ts"
import { nowMs } from "./Deadlines.ts"
import type { Flaw } from "./Framing.ts"

interface AnonymousLimits {
  /** Requests a second of one address. */
  readonly perSecond: number
  /** Proxies whose X-Forwarded-For is trusted. */
  readonly isTrusted: IsTrusted
}

/** Burst, in seconds' worth of requests. A guess: a page with its parts, a hundred users behind one address. */
const burstSeconds = 4
/** Addresses remembered, about 100 bytes each. */
const maxAddresses = 10_000
/** Never counted: load balancers request it from the address of all their clients, and it costs little. */
const free = "/health"

/** The parts of a request used here. */
interface CountedRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly notes: Pick<RequestContext, "identified">
  readonly peerAddress: () => string
}

/** True if a header, the query or a subprotocol may hold a credential. Its validity is not known yet. */
const bringsCredential = ({ headers, url }: CountedRequest): boolean =>
  headers.authorization !== undefined ||
  headers["sec-websocket-protocol"] !== undefined ||
  url.includes("token=")

export class AnonymousBudget {
  readonly #isTrusted: IsTrusted
  readonly #requests: GcraLimiter

  constructor({ isTrusted, perSecond }: AnonymousLimits) {
    this.#isTrusted = isTrusted
    const forgiveMs = 1_000 / perSecond
    this.#requests = new GcraLimiter({ burst: perSecond * burstSeconds, forgiveMs, maxAddresses })
  }

  /** The refusal, if the request brings no credential and its address is over the budget. */
  refusal(exchange: CountedRequest): Flaw | undefined {
    if (this.#requests.addresses === 0 || bringsCredential(exchange) || exchange.url === free)
      return undefined
    const waitMs = this.#requests.waitMs(this.#addressOf(exchange), nowMs())
    if (waitMs === 0) return undefined
    return {
      status: 429,
      detail: "too many requests without a credential from this address",
      headers: { "retry-after": String(Math.ceil(waitMs / 1_000)) },
    }
  }

  /** Counts a response that has ended. */
  ended(exchange: CountedRequest): void {
    if (exchange.notes.identified || exchange.url === free) return
    this.#requests.failed(this.#addressOf(exchange), nowMs())
  }

  #addressOf(exchange: CountedRequest): string {
    return subscriberOf(
      clientAddress(exchange.peerAddress(), exchange.headers["x-forwarded-for"], this.#isTrusted),
    )
  }
}
