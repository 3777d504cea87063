// What the node counts about its requests and about its own telemetry, for /metrics. Listeners tell it of every answer
// that has ended; whoever wants each one (access log, traces) registers here. Written on the hot path, so it allocates
// nothing a request; kept as long as the node.
import { Context } from "effect"
import { Histogram } from "#domain/queues/Histogram.ts"
import type { RegionReading } from "#domain/regions/RegionReading.ts"
import { idOfModelPath, modelPath } from "./NotFound.ts"
import { nowMs, type RequestContext } from "./RequestContext.ts"
import type { WorkTracer } from "./TracedWork.ts"

/** An answer that has ended, however it did. Read during the call only: it is the transport's own. */
export interface EndedRequest {
  readonly method: string
  /** Path and query; the query may hold a credential and is nobody's business. */
  readonly url: string
  /** 0 where the client left before there was one. */
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly notes: RequestContext
}

/** What a listener counts by itself. */
export interface ListenerCounts {
  /** Open TCP connections, WebSockets included. */
  readonly connections: number
  readonly webSockets: number
  /** Response bytes that wait in this process for slow readers; an upper bound. */
  readonly replyBufferedBytes: number
  /** Request body bytes that wait for their handler. */
  readonly bodyBufferedBytes: number
  /** Clients that left before their answer was complete. */
  readonly aborts: number
  /** Readers cut for taking too little, responses and WebSockets alike. */
  readonly slowReadersCut: number
  /** Responses that failed after their head and were closed without an end. */
  readonly brokenReplies: number
  /** 431, 413 and 408 given by the transport itself. */
  readonly headsTooLarge: number
  /** Requests whose head could be read in two ways: 400 and 426. */
  readonly framingRefused: number
  readonly bodiesTooLarge: number
  readonly bodiesStalled: number
  /** Bodies that came in too many small pieces: 400. */
  readonly bodiesScattered: number
  /** Connections closed at once because there were too many. */
  readonly connectionsRefused: number
  /** 429 for requests without a credential. */
  readonly anonymousRefused: number
  /** WebSockets that were closed for too many small messages. */
  readonly socketsFlooded: number
}

/** What a listener tells. */
export interface RequestObserver {
  readonly listening: (counts: ListenerCounts) => void
  readonly ended: (request: EndedRequest) => void
}

export type RequestWatcher = (request: EndedRequest, route: string, endedMs: number) => void

export const unknownRoute = "other"
const methods = ["GET", "POST", "DELETE", "HEAD", "OPTIONS"]
/** As many as HTTP has; a slot each, so that counting is an addition. */
const statuses = 600
/** Nobody was told a status; the number that proxies use for it. */
export const clientLeft = 499

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

export class NodeMeters implements RequestObserver {
  private readonly routes: ReadonlyMap<string, RouteMeters>
  private readonly rest = routeMeters(unknownRoute)
  private readonly modelRoute: RouteMeters
  private readonly watchers = new Set<RequestWatcher>()
  readonly listeners: Array<ListenerCounts> = []
  logLines = 0
  logLinesDropped = 0
  readonly otlpSent: Record<Signal, number> = { traces: 0, logs: 0 }
  readonly otlpDropped: Record<Signal, number> = { traces: 0, logs: 0 }
  /** What the router of this process has measured last; nothing without a router, or where it does not probe. */
  regions: (nowMs: number) => ReadonlyArray<RegionReading> = () => []
  /** Told of work behind answers; undefined where no traces are exported, and then no work is followed. */
  tracer: WorkTracer | undefined

  /** @param paths of all roles; each is a label */
  constructor(paths: Iterable<string>) {
    this.routes = new Map([...paths].map((path) => [path, routeMeters(path)]))
    this.modelRoute = this.routes.get(modelPath) ?? this.rest
  }

  listening(counts: ListenerCounts): void {
    this.listeners.push(counts)
  }

  ended(request: EndedRequest): void {
    const { method, notes, url } = request
    const query = url.indexOf("?")
    const path = query < 0 ? url : url.slice(0, query)
    // One label for all models: their ids in paths are a caller's words.
    const meters = this.routes.get(path) ?? (idOfModelPath(path) === undefined ? this.rest : this.modelRoute)
    const at = methods.indexOf(method)
    meters.counts[at < 0 ? methods.length : at]!.byStatus[request.status || clientLeft]!++
    const endedMs = nowMs()
    meters.durationMs.record(endedMs - notes.startedMs)
    for (const watch of this.watchers) watch(request, meters.route, endedMs)
  }

  /** Calls `watch` for every answer that ends, until what is returned is called. Must be quick and must not throw. */
  watch(watch: RequestWatcher): () => void {
    this.watchers.add(watch)
    return () => void this.watchers.delete(watch)
  }

  /** Routes that were asked for, in the order of the table. */
  asked(): ReadonlyArray<RouteMeters> {
    return [...this.routes.values(), this.rest].filter(({ durationMs }) => durationMs.count > 0)
  }

  /** One number over all listeners of the process. */
  total(part: (counts: ListenerCounts) => number): number {
    return this.listeners.reduce((sum, counts) => sum + part(counts), 0)
  }
}

/** Of the node; one that counts for nobody where none is given. */
export const CurrentNodeMeters = Context.Reference<NodeMeters>("edgewise/api/NodeMeters", {
  defaultValue: () => new NodeMeters([]),
})
