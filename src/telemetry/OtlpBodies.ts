// Batches of spans and log records as bodies of OTLP over HTTP. Pure.
import { Cause, type Logger } from "effect"
import type * as HttpBody from "effect/http/HttpBody"
import type { OtlpLogger, OtlpSerialization, OtlpTracer } from "effect/observability"
import { notesOf } from "./LogLines.ts"
import { attributesOf, spansOf, type Traced, traceOf } from "./Trace.ts"

type Serialization = OtlpSerialization.OtlpSerialization["Service"]

/** Attributes of every batch, and the format of its body. */
interface Sender {
  readonly resource: Readonly<Record<string, string>>
  readonly serialization: Serialization
}

const scope = { name: "edgewise" }

const resourceOf = ({ resource }: Sender) => ({
  attributes: attributesOf(resource),
  droppedAttributesCount: 0,
})

export const tracesBody =
  (sender: Sender) =>
  (batch: ReadonlyArray<Traced>): HttpBody.HttpBody => {
    const scopeSpans: Array<OtlpTracer.ScopeSpan> = [{ scope, spans: batch.flatMap(spansOf) }]
    return sender.serialization.traces({ resourceSpans: [{ resource: resourceOf(sender), scopeSpans }] })
  }

export type LogRecord = NonNullable<
  OtlpLogger.LogsData["resourceLogs"][number]["scopeLogs"][number]["logRecords"]
>[number]

/** OTLP's severity numbers. */
const severities = { Trace: 1, Debug: 5, Info: 9, Warn: 13, Error: 17, Fatal: 21, All: 0, None: 0 } as const

const isPlain = (value: unknown): value is string | number =>
  typeof value === "string" || typeof value === "number"

/** A log event as a record: its message, ids and numbers, and the kind of its cause; never the content of a request. */
export const logRecord = (
  options: Logger.Options<unknown>,
  annotations: Readonly<Record<string, unknown>>,
): LogRecord => {
  const parts: ReadonlyArray<unknown> = Array.isArray(options.message) ? options.message : [options.message]
  const notes = notesOf(options)
  const plain = Object.fromEntries(
    Object.entries(annotations).flatMap(([key, value]) => (isPlain(value) ? [[key, value]] : [])),
  )
  const trace = notes === undefined ? undefined : traceOf(notes)
  const timeUnixNano = `${options.date.getTime()}000000`
  return {
    timeUnixNano,
    observedTimeUnixNano: timeUnixNano,
    severityNumber: severities[options.logLevel],
    severityText: options.logLevel,
    body: { stringValue: parts.filter(isPlain).join(" ") },
    attributes: attributesOf({
      ...plain,
      "edgewise.request_id": notes?.requestId,
      "exception.type":
        options.cause.reasons.length === 0 ? undefined : Cause.prettyErrors(options.cause)[0]?.name,
    }),
    droppedAttributesCount: 0,
    ...(trace === undefined ? {} : { traceId: trace.traceId, spanId: trace.spanId }),
  }
}

export const logsBody =
  (sender: Sender) =>
  (batch: ReadonlyArray<LogRecord>): HttpBody.HttpBody =>
    sender.serialization.logs({
      resourceLogs: [{ resource: resourceOf(sender), scopeLogs: [{ scope, logRecords: [...batch] }] }],
    })
