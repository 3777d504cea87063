// How many requests an address may make without a valid credential. They are free of charge, and a few thousand a
// second would take a whole core. Counted when an answer has ended, asked before a request without any credential runs;
// one that brings a credential is never refused here, whatever others at its address do. Used by UwsServer.

import { clientAddress, type IsTrusted, subscriberOf } from "#domain/access/ClientAddress.ts"
import { GcraLimiter } from "#domain/access/GcraLimiter.ts"
import type { RequestContext } from "#http/RequestContext.ts"
import { nowMs } from "./Deadlines.ts"
import type { Flaw } from "./Framing.ts"

export interface AnonymousLimits {
  /** Requests a second of one address. */
  readonly perSecond: number
  /** Whose X-Forwarded-For is believed. */
  readonly isTrusted: IsTrusted
}

/** Seconds' worth of requests that may come at once. A guess: a page with its parts, a hundred users behind one address. */
const burstSeconds = 4
/** About 100 bytes each. */
const maxAddresses = 10_000
/** Load balancers ask for this from the address of all their callers, and it costs little. */
const free = "/health"

/** What is looked at of a request. */
export interface CountedRequest {
  readonly url: string
  readonly headers: Readonly<Record<string, string>>
  readonly notes: Pick<RequestContext, "identified">
  readonly peerAddress: () => string
}

/** A header, a query or a subprotocol may hold a credential; whether it is valid is not known yet. */
const bringsCredential = ({ headers, url }: CountedRequest): boolean =>
  headers.authorization !== undefined ||
  headers["sec-websocket-protocol"] !== undefined ||
  url.includes("token=")

export class AnonymousBudget {
  private readonly isTrusted: IsTrusted
  private readonly requests: GcraLimiter

  constructor({ isTrusted, perSecond }: AnonymousLimits) {
    this.isTrusted = isTrusted
    const forgiveMs = 1_000 / perSecond
    this.requests = new GcraLimiter({ burst: perSecond * burstSeconds, forgiveMs, maxAddresses })
  }

  /** The refusal of a request that brings no credential from an address that has made too many. */
  refusal(exchange: CountedRequest): Flaw | undefined {
    if (this.requests.addresses === 0 || bringsCredential(exchange) || exchange.url === free) return undefined
    const waitMs = this.requests.waitMs(this.addressOf(exchange), nowMs())
    if (waitMs === 0) return undefined
    return {
      status: 429,
      detail: "too many requests without a credential from this address",
      headers: { "retry-after": String(Math.ceil(waitMs / 1_000)) },
    }
  }

  /** An answer has ended. */
  ended(exchange: CountedRequest): void {
    if (exchange.notes.identified || exchange.url === free) return
    this.requests.failed(this.addressOf(exchange), nowMs())
  }

  private addressOf(exchange: CountedRequest): string {
    return subscriberOf(
      clientAddress(exchange.peerAddress(), exchange.headers["x-forwarded-for"], this.isTrusted),
    )
  }
}
