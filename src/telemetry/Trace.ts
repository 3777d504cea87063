// A request as OTLP spans in JSON: one span for the request, one for each of its steps; background work likewise.
// Continues the caller's `traceparent`. The spans are built when a batch is sent, not while the request runs. Pure
// except for random ids.

import { randomBytes } from "node:crypto"
import type { OtlpResource, OtlpTracer } from "effect/observability"
import type { RequestContext } from "#http/RequestContext.ts"
import type { EndedWork } from "#http/TracedWork.ts"

interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string
  /** 16 hex digits: the request's own span. */
  readonly spanId: string
  /** The caller's span. Undefined if the trace begins here. */
  readonly parentSpanId: string | undefined
  readonly sampled: boolean
}

const hex = (bytes: number): string => randomBytes(bytes).toString("hex")

/** W3C Trace Context version 00, and later versions, which only append to it. */
const pattern = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/

/** The trace of a request: the caller's if its header is valid, else a new one. */
export const traceFrom = (traceparent: string | undefined): TraceContext => {
  const match = pattern.exec(traceparent ?? "")
  const [, traceId = "", parentSpanId = "", flags = ""] = match ?? []
  return match === null || /^0+$/.test(traceId) || /^0+$/.test(parentSpanId)
    ? { traceId: hex(16), spanId: hex(8), parentSpanId: undefined, sampled: true }
    : { traceId, spanId: hex(8), parentSpanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

const traces = new WeakMap<RequestContext, TraceContext>()

/** The trace of a request; logs and spans share it. */
export const traceOf = (notes: RequestContext): TraceContext => {
  const known = traces.get(notes)
  if (known !== undefined) return known
  const trace = traceFrom(notes.traceparent)
  traces.set(notes, trace)
  return trace
}

/** The request's own span as a `traceparent`, for work that continues after the response. */
export const traceparentOf = (notes: RequestContext): string => {
  const { sampled, spanId, traceId } = traceOf(notes)
  return `00-${traceId}-${spanId}-${sampled ? "01" : "00"}`
}

interface EndedTrace {
  readonly notes: RequestContext
  readonly method: string
  readonly route: string
  readonly status: number
  readonly endedMs: number
}

/** In OTLP, integers are strings. */
export const attributesOf = (
  values: Readonly<Record<string, string | number | undefined>>,
): Array<OtlpResource.KeyValue> =>
  Object.entries(values).flatMap(([key, value]) =>
    value === undefined
      ? []
      : [
          {
            key,
            value:
              typeof value === "string" ? { stringValue: value } : { intValue: String(Math.round(value)) },
          },
        ],
  )

export type Span = OtlpTracer.ScopeSpan["spans"][number]

/** Fields that are empty in every span of a node. */
const nothingElse = () => ({
  droppedAttributesCount: 0,
  events: [],
  droppedEventsCount: 0,
  links: [],
  droppedLinksCount: 0,
})

/** Nanoseconds since 1970, to the microsecond, from a time of `performance.now()`. */
const unixNano = (ms: number): string => `${Math.round((performance.timeOrigin + ms) * 1_000)}000`

/** OTLP's numbers. */
const spanKind = { internal: 1, server: 2, consumer: 5 }
const noStatus = { code: 0 } as const
const errorStatus = { code: 2 } as const

interface Whole {
  readonly notes: RequestContext
  readonly name: string
  readonly kind: number
  readonly endedMs: number
  readonly failed: boolean
  readonly attributes: Readonly<Record<string, string | number | undefined>>
}

const wholeSpan = ({ attributes, endedMs, failed, kind, name, notes }: Whole): Span => {
  const { parentSpanId, spanId, traceId } = traceOf(notes)
  return {
    traceId,
    spanId,
    parentSpanId,
    name,
    kind,
    startTimeUnixNano: unixNano(notes.startedMs),
    endTimeUnixNano: unixNano(endedMs),
    attributes: attributesOf({ ...attributes, "edgewise.model": notes.model }),
    status: failed ? errorStatus : noStatus,
    ...nothingElse(),
  }
}

const stepSpan = (notes: RequestContext, name: string, fromMs: number, toMs: number): Span => {
  const { spanId, traceId } = traceOf(notes)
  return {
    traceId,
    spanId: hex(8),
    parentSpanId: spanId,
    name,
    kind: spanKind.internal,
    startTimeUnixNano: unixNano(fromMs),
    endTimeUnixNano: unixNano(Math.max(fromMs, toMs)),
    attributes: attributesOf({ "edgewise.model": notes.model }),
    status: noStatus,
    ...nothingElse(),
  }
}

/** One span for each step that the request context has recorded. */
const stepSpans = (notes: RequestContext, engineEndedMs: number): ReadonlyArray<Span> => {
  const { askedMs, authMs, firstUnitMs, queueMs, startedMs } = notes
  const spans: Array<Span> = []
  const step = (name: string, fromMs: number, toMs: number) =>
    void spans.push(stepSpan(notes, name, fromMs, toMs))
  if (authMs !== undefined) step("auth", startedMs, startedMs + authMs)
  if (askedMs === undefined || queueMs === undefined) return spans
  const openedMs = askedMs + queueMs
  step("queue", askedMs, openedMs)
  if (firstUnitMs !== undefined) step("first unit", openedMs, startedMs + firstUnitMs)
  step("engine", openedMs, engineEndedMs)
  return spans
}

const requestSpans = ({ endedMs, method, notes, route, status }: EndedTrace): ReadonlyArray<Span> => [
  wholeSpan({
    notes,
    name: `${method} ${route}`,
    kind: spanKind.server,
    endedMs,
    failed: status >= 500,
    attributes: {
      "http.request.method": method,
      "http.route": route,
      "http.response.status_code": status,
      "edgewise.request_id": notes.requestId,
    },
  }),
  ...stepSpans(notes, endedMs),
]

const workSpans = ({
  endedMs,
  engineEndedMs,
  facts,
  failed,
  name,
  notes,
  steps,
}: EndedWork): ReadonlyArray<Span> => [
  wholeSpan({
    notes,
    name,
    // A job is taken from a queue.
    kind: name === "transcription job" ? spanKind.consumer : spanKind.internal,
    endedMs,
    failed,
    attributes: facts,
  }),
  ...stepSpans(notes, engineEndedMs),
  ...steps.map(({ fromMs, name: step, toMs }) => stepSpan(notes, step, fromMs, toMs)),
]

/** An element of a batch of traces. */
export type Traced = EndedTrace | EndedWork

/** The span of the request or work, and one for each of its steps. */
export const spansOf = (ended: Traced): ReadonlyArray<Span> =>
  "route" in ended ? requestSpans(ended) : workSpans(ended)
