// Counters of the node's requests and of its own telemetry, for /metrics. Listeners report every answer that has ended;
// watchers (access log, traces) register here. Written on the hot path, so it allocates nothing for a request; lives as
// long as the node.
import { Context } from "effect"
import { ConversationMeters } from "#domain/conversation/ConversationMeters.ts"
import { Histogram } from "#domain/queues/Histogram.ts"
import { hangUpPath, idOfHangUp, idOfModelPath, modelPath, playgroundFiles } from "./NotFound.ts"
import { nowMs, type RequestContext } from "./RequestContext.ts"
import type { WorkTracer } from "./TracedWork.ts"

/** An answer that has ended in any way. Valid during the call only: the transport reuses it. */
export interface EndedRequest {
  readonly method: string
  /** Path and query; the query may hold a credential and must not be logged. */
  readonly url: string
  /** 0 if the client disconnected before there was one. */
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly notes: RequestContext
}

/**
 * How a WebSocket ended (protocol 16.1). `client`, `node`: with a close frame, which that side sent first. `vanished`: the client ended
 * the connection without one. The others are cut by the node, and no close frame reaches the client. `unread`: it does not
 * read. `silent`: it answers no ping. `malformed`: a frame that RFC 6455 forbids, or that is far too large.
 */
export const socketEnds = ["client", "node", "vanished", "unread", "silent", "malformed"] as const
export type SocketEnd = (typeof socketEnds)[number]

/** Counters of one listener. */
export interface ListenerCounts {
  /** Open TCP connections, WebSockets included. */
  readonly connections: number
  readonly webSockets: number
  readonly socketEnds: Readonly<Record<SocketEnd, number>>
  /** Response bytes buffered in this process for slow readers; an upper bound. */
  readonly replyBufferedBytes: number
  /** Request body bytes that wait for their handler. */
  readonly bodyBufferedBytes: number
  /** Clients that disconnected before their answer was complete. */
  readonly aborts: number
  /** Readers cut for reading too slowly, responses and WebSockets alike. */
  readonly slowReadersCut: number
  /** Responses that failed after their head and were closed without an end. */
  readonly brokenReplies: number
  /** 431, 413 and 408 answered by the transport itself. */
  readonly headsTooLarge: number
  /** Requests whose head could be read in two ways: 400 and 426. */
  readonly framingRefused: number
  readonly bodiesTooLarge: number
  readonly bodiesStalled: number
  /** Bodies that came in too many small pieces: 400. */
  readonly bodiesScattered: number
  /** Connections closed at once because there were too many. */
  readonly connectionsRefused: number
  /** Connections closed at once because only trusted proxies may connect. */
  readonly unlistedRefused: number
  /** 429 for requests without a credential. */
  readonly anonymousRefused: number
  /** WebSockets that were closed for too many small messages. */
  readonly socketsFlooded: number
  /** WebSockets that were closed because too many bytes of their messages waited, which cannot be paused on uWebSockets.js. */
  readonly socketsOverrun: number
}

/** What a listener reports. */
export interface RequestObserver {
  readonly listening: (counts: ListenerCounts) => void
  readonly ended: (request: EndedRequest) => void
}

type RequestWatcher = (request: EndedRequest, route: string, endedMs: number) => void

const unknownRoute = "other"
const methods = ["GET", "POST", "DELETE", "HEAD", "OPTIONS"]
/** The number of HTTP statuses; one slot each, so that counting is an addition. */
const statuses = 600
/** Counts answers without a status; proxies use this number for it. */
const clientLeft = 499

interface RouteMeters {
  readonly route: string
  readonly durationMs: Histogram
  /** By method, then status. */
  readonly counts: ReadonlyArray<{ readonly method: string; readonly byStatus: Float64Array }>
}

const routeMeters = (route: string): RouteMeters => ({
  route,
  durationMs: new Histogram(),
  counts: [...methods, "other"].map((method) => ({ method, byStatus: new Float64Array(statuses) })),
})

export type Signal = "traces" | "logs"

/** The result of probing one region: its newest health, and the round trip from this process to its edge. */
export interface RegionReading {
  readonly region: string
  readonly healthy: boolean
  /** Milliseconds. Undefined if no recent probe was answered. */
  readonly roundTripMs: number | undefined
}

export class NodeMeters implements RequestObserver {
  readonly #routes: ReadonlyMap<string, RouteMeters>
  readonly #rest = routeMeters(unknownRoute)
  readonly #modelRoute: RouteMeters
  readonly #playgroundRoute: RouteMeters
  readonly #watchers = new Set<RequestWatcher>()
  readonly listeners: Array<ListenerCounts> = []
  readonly conversations = new ConversationMeters()
  logLines = 0
  logLinesDropped = 0
  readonly otlpSent: Record<Signal, number> = { traces: 0, logs: 0 }
  readonly otlpDropped: Record<Signal, number> = { traces: 0, logs: 0 }
  /** The latest measurements of this process's router; nothing without a router, or if it does not probe. */
  regions: (nowMs: number) => ReadonlyArray<RegionReading> = () => []
  /** Receives the spans of background work; undefined if no traces are exported, and then no work is recorded. */
  tracer: WorkTracer | undefined

  /** @param paths of all roles; each is a label */
  constructor(paths: Iterable<string>) {
    this.#routes = new Map([...paths].map((path) => [path, routeMeters(path)]))
    this.#modelRoute = this.#routes.get(modelPath) ?? this.#rest
    this.#playgroundRoute = this.#routes.get(playgroundFiles) ?? this.#rest
  }

  listening(counts: ListenerCounts): void {
    this.listeners.push(counts)
  }

  ended(request: EndedRequest): void {
    const { method, notes, url } = request
    const query = url.indexOf("?")
    const path = query < 0 ? url : url.slice(0, query)
    const meters = this.#routes.get(path) ?? this.#sharedRoute(path)
    const at = methods.indexOf(method)
    meters.counts[at < 0 ? methods.length : at]!.byStatus[request.status || clientLeft]!++
    const endedMs = nowMs()
    meters.durationMs.record(endedMs - notes.startedMs)
    for (const watch of this.#watchers) watch(request, meters.route, endedMs)
  }

  /** One label for all models and one for the playground's files: callers can send anything in such a path. */
  #sharedRoute(path: string): RouteMeters {
    if (path.startsWith("/playground/")) return this.#playgroundRoute
    if (idOfHangUp(path) !== undefined) return this.#routes.get(hangUpPath) ?? this.#rest
    return idOfModelPath(path) === undefined ? this.#rest : this.#modelRoute
  }

  /** Calls `watch` for every answer that ends, until the returned function is called. Must be quick and must not throw. */
  watch(watch: RequestWatcher): () => void {
    this.#watchers.add(watch)
    return () => void this.#watchers.delete(watch)
  }

  /** Requested routes, in the order of the table. */
  asked(): ReadonlyArray<RouteMeters> {
    return [...this.#routes.values(), this.#rest].filter(({ durationMs }) => durationMs.count > 0)
  }

  /** One number over all listeners of the process. */
  total(part: (counts: ListenerCounts) => number): number {
    return this.listeners.reduce((sum, counts) => sum + part(counts), 0)
  }
}

/** Metrics of this node. Defaults to an instance that no endpoint reports (used in tests and scripts). */
export const CurrentNodeMeters = Context.Reference<NodeMeters>("edgewise/api/NodeMeters", {
  defaultValue: () => new NodeMeters([]),
})
