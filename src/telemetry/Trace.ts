// A request as spans, in OTLP's JSON form: the request itself and, inside it, its steps as its notes have them. Honours
// the caller's `traceparent`. Made when a batch is sent, not while the request runs. Pure but for the random ids.
import { randomBytes } from "node:crypto"
import type { RequestNotes } from "#api/RequestNotes.ts"

export interface TraceContext {
  /** 32 hex digits. */
  readonly traceId: string
  /** 16 hex digits: the request's own span. */
  readonly spanId: string
  /** The caller's span; undefined where the trace begins here. */
  readonly parentSpanId: string | undefined
  readonly sampled: boolean
}

const hex = (bytes: number): string => randomBytes(bytes).toString("hex")

/** W3C Trace Context, version 00 and whatever later versions add behind it. */
const pattern = /^(?!ff)[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(?:$|-)/

/** The trace of a request: the caller's where it names one that makes sense, else a new one. */
export const traceFrom = (traceparent: string | undefined): TraceContext => {
  const match = pattern.exec(traceparent ?? "")
  const [, traceId = "", parentSpanId = "", flags = ""] = match ?? []
  return match === null || /^0+$/.test(traceId) || /^0+$/.test(parentSpanId)
    ? { traceId: hex(16), spanId: hex(8), parentSpanId: undefined, sampled: true }
    : { traceId, spanId: hex(8), parentSpanId, sampled: (Number.parseInt(flags, 16) & 1) === 1 }
}

const traces = new WeakMap<RequestNotes, TraceContext>()

/** The same for a request's logs and its spans. */
export const traceOf = (notes: RequestNotes): TraceContext => {
  const known = traces.get(notes)
  if (known !== undefined) return known
  const trace = traceFrom(notes.traceparent)
  traces.set(notes, trace)
  return trace
}

export interface EndedTrace {
  readonly notes: RequestNotes
  readonly method: string
  readonly route: string
  readonly status: number
  readonly endedMs: number
}

export interface Attribute {
  readonly key: string
  readonly value: { readonly stringValue: string } | { readonly intValue: string }
}

/** Integers are texts in OTLP's JSON. */
export const attributesOf = (
  values: Readonly<Record<string, string | number | undefined>>,
): ReadonlyArray<Attribute> =>
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

/** Nanoseconds since 1970 of a time of the program's clock, to the microsecond. */
export const unixNano = (ms: number): string => `${Math.round((performance.timeOrigin + ms) * 1_000)}000`

/** OTLP's numbers. */
const spanKind = { internal: 1, server: 2 }
const errorStatus = 2

/** The request's span and one for each step that it took. */
export const spansOf = ({ endedMs, method, notes, route, status }: EndedTrace): ReadonlyArray<object> => {
  const { parentSpanId, spanId, traceId } = traceOf(notes)
  const { askedMs, authMs, firstUnitMs, model, queueMs, requestId, startedMs } = notes
  const request = {
    traceId,
    spanId,
    ...(parentSpanId === undefined ? {} : { parentSpanId }),
    name: `${method} ${route}`,
    kind: spanKind.server,
    startTimeUnixNano: unixNano(startedMs),
    endTimeUnixNano: unixNano(endedMs),
    attributes: attributesOf({
      "http.request.method": method,
      "http.route": route,
      "http.response.status_code": status,
      "edgewise.request_id": requestId,
      "edgewise.model": model,
    }),
    status: status >= 500 ? { code: errorStatus } : {},
  }
  const step = (name: string, fromMs: number, toMs: number) => ({
    traceId,
    spanId: hex(8),
    parentSpanId: spanId,
    name,
    kind: spanKind.internal,
    startTimeUnixNano: unixNano(fromMs),
    endTimeUnixNano: unixNano(Math.max(fromMs, toMs)),
    attributes: attributesOf({ "edgewise.model": model }),
    status: {},
  })
  const spans: Array<object> = [request]
  if (authMs !== undefined) spans.push(step("auth", startedMs, startedMs + authMs))
  if (askedMs === undefined || queueMs === undefined) return spans
  const openedMs = askedMs + queueMs
  spans.push(step("queue", askedMs, openedMs))
  if (firstUnitMs !== undefined) spans.push(step("first unit", openedMs, startedMs + firstUnitMs))
  spans.push(step("engine", openedMs, endedMs))
  return spans
}
