// Makes an exchange of each request, refuses what must not reach the application, runs the application's fiber for the
// others, and tracks the running ones.
import { Context, Effect, Fiber } from "effect"
import { HttpServerRequest } from "effect/http"
import { type Listed, UnorderedSet } from "#domain/queues/UnorderedSet.ts"
import { CurrentRequest } from "#http/RequestContext.ts"
import { framingFlaw, proxyHeaderFlaw } from "../Framing.ts"
import { RequestQueue } from "../RequestQueue.ts"
import type { IncomingHead, ReplyChannel } from "./Channel.ts"
import { refuse, refuseUnread } from "./EarlyResponse.ts"
import { Exchange } from "./Exchange.ts"
import { IncomingBody } from "./IncomingBody.ts"
import type { ListenerState } from "./ListenerState.ts"
import { ServerRequest } from "./ServerRequest.ts"

/** The application: writes the response of one request. */
export type Handled = Effect.Effect<void, never, HttpServerRequest.HttpServerRequest>

/**
 * Services that a request may add to the node's. With more than this, Effect copies the map of all services for the
 * request. Its router, the api and this file add nine.
 */
const servicesOfARequest = 16

/** uWebSockets.js itself refuses more. */
const mostHeaders = 99

interface RunningRequest extends Listed {
  readonly fiber: Fiber.Fiber<void>
}

/** Starts a fiber for each request and tracks the running ones. */
export class Dispatcher {
  readonly state: ListenerState
  #handled: Handled | undefined
  #services: Context.Context<never> = Context.empty()
  readonly #running = new UnorderedSet<RunningRequest>()
  #stopped = false
  readonly #idleWaiters = new Set<() => void>()
  readonly #queue: RequestQueue<Exchange>

  constructor(state: ListenerState) {
    this.state = state
    this.#queue = new RequestQueue(state.ticks, (exchange) => this.#run(exchange))
  }

  serve(handled: Handled, services: Context.Context<never>): void {
    this.#handled = handled
    this.#services = Context.makeUnsafe(services.mapUnsafe, { maxDepth: servicesOfARequest })
  }

  /** Interrupts the running requests, and every further one. */
  readonly interruptAll: Effect.Effect<void> = Effect.suspend(() => {
    this.#stopped = true
    return Fiber.interruptAll(this.#running.values().map(({ fiber }) => fiber))
  })

  readonly idle: Effect.Effect<void> = Effect.callback((resume) => {
    if (this.state.counters.inFlight === 0) return resume(Effect.void)
    const wake = (): void => {
      this.#idleWaiters.delete(wake)
      resume(Effect.void)
    }
    this.#idleWaiters.add(wake)
    return Effect.sync(() => this.#idleWaiters.delete(wake))
  })

  readonly onRequest = (res: ReplyChannel, head: IncomingHead): Exchange => {
    const exchange = new Exchange(this.state, res, head)
    try {
      this.#begin(exchange)
    } finally {
      // Required on every path: uWS ends the process if a request is left without a response and without `onAborted`.
      if (!exchange.done) exchange.attach()
      exchange.inCallback = false
    }
    return exchange
  }

  #begin(exchange: Exchange): void {
    const { headBytes, eagerBodyBytes } = this.state.settings
    const flaw = exchange.res.namesProxiedPeer()
      ? proxyHeaderFlaw
      : framingFlaw(exchange, this.state.settings.chunkedBodies)
    if (flaw !== undefined) {
      this.state.counters.framingRefused++
      return refuseUnread(exchange, flaw)
    }
    const tooMany = this.state.anonymous?.refusal(exchange)
    if (tooMany !== undefined) {
      this.state.counters.anonymousRefused++
      return refuseUnread(exchange, tooMany)
    }
    this.#startBody(exchange)
    if (exchange.headBytes > headBytes) {
      this.state.counters.headsTooLarge++
      return refuse(exchange, 431, `headers: larger than ${headBytes} bytes`)
    }
    if (exchange.headerCount > mostHeaders) {
      this.state.counters.headsTooLarge++
      return refuse(exchange, 431, `headers: more than ${mostHeaders}`)
    }
    const lengthBytes = exchange.body?.lengthBytes
    if (lengthBytes === undefined || lengthBytes > eagerBodyBytes) this.#queue.admit(exchange)
  }

  /** uWS delivers the body only to a handler set before this callback returns. */
  #startBody(exchange: Exchange): void {
    const { headers } = exchange
    const chunked = headers["transfer-encoding"] !== undefined
    const lengthBytes = chunked ? undefined : Number(headers["content-length"] ?? 0)
    if (lengthBytes === 0) return
    const body = new IncomingBody(exchange, lengthBytes)
    exchange.body = body
    // Such a body may end elsewhere than uWS thinks, so it must still be unanswered when uWS parses what follows in the
    // same read. Node reports a wrong chunk line of the same read after the head.
    exchange.deferred = chunked
    // uWS accepts chunk lines that RFC 9112 forbids, so what follows such a body cannot be trusted.
    exchange.closesConnection = chunked && !exchange.res.readsChunksExactly
    const eager = lengthBytes !== undefined && lengthBytes <= this.state.settings.eagerBodyBytes
    body.start(eager ? () => this.#queue.admit(exchange) : undefined)
  }

  #run(exchange: Exchange): void {
    if (this.#handled === undefined) return refuse(exchange, 503, "Service Unavailable")
    const { counters } = this.state
    counters.requests++
    const request = new ServerRequest(exchange)
    const fiber = Effect.runForkWith(
      Context.add(this.#services, HttpServerRequest.HttpServerRequest, request).pipe(
        Context.add(CurrentRequest, exchange.notes),
      ),
    )(this.#handled)
    if (fiber.pollUnsafe() !== undefined) return this.#finished(exchange)
    counters.inFlight++
    exchange.runs(fiber)
    const running: RunningRequest = { fiber, listedAt: -1 }
    this.#running.add(running)
    fiber.addObserver(() => {
      this.#running.delete(running)
      counters.inFlight--
      this.#finished(exchange)
      if (counters.inFlight === 0) for (const wake of [...this.#idleWaiters]) wake()
    })
    if (this.#stopped) fiber.interruptUnsafe()
  }

  /** Answers for a fiber that ended without a response; otherwise its client would wait forever. */
  #finished(exchange: Exchange): void {
    if (exchange.headSent) exchange.close()
    else if (!exchange.done) refuse(exchange, 500, "Internal Server Error")
  }
}
