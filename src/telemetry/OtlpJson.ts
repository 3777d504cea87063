// Batches of spans and log records as JSON bodies of OTLP/HTTP. Pure.
import { Cause, type Logger } from "effect"
import { notesOf } from "./LogLines.ts"
import { attributesOf, spansOf, type Traced, traceOf } from "./Trace.ts"

type Resource = Readonly<Record<string, string>>

const scope = { name: "edgewise" }

export const tracesBody =
  (resource: Resource) =>
  (batch: ReadonlyArray<Traced>): string =>
    JSON.stringify({
      resourceSpans: [
        {
          resource: { attributes: attributesOf(resource) },
          scopeSpans: [{ scope, spans: batch.flatMap(spansOf) }],
        },
      ],
    })

/** OTLP's severity numbers. */
const severities: Readonly<Record<string, number>> = {
  Trace: 1,
  Debug: 5,
  Info: 9,
  Warn: 13,
  Error: 17,
  Fatal: 21,
}

const isPlain = (value: unknown): value is string | number =>
  typeof value === "string" || typeof value === "number"

/** A log event as a record: its message, ids and numbers, and the kind of its cause; never the content of a request. */
export const logRecord = (
  options: Logger.Options<unknown>,
  annotations: Readonly<Record<string, unknown>>,
): object => {
  const parts: ReadonlyArray<unknown> = Array.isArray(options.message) ? options.message : [options.message]
  const notes = notesOf(options)
  const plain = Object.fromEntries(
    Object.entries(annotations).flatMap(([key, value]) => (isPlain(value) ? [[key, value]] : [])),
  )
  const trace = notes === undefined ? undefined : traceOf(notes)
  return {
    timeUnixNano: `${options.date.getTime()}000000`,
    severityNumber: severities[options.logLevel] ?? 0,
    severityText: options.logLevel,
    body: { stringValue: parts.filter(isPlain).join(" ") },
    attributes: attributesOf({
      ...plain,
      "edgewise.request_id": notes?.requestId,
      "exception.type":
        options.cause.reasons.length === 0 ? undefined : Cause.prettyErrors(options.cause)[0]?.name,
    }),
    ...(trace === undefined ? {} : { traceId: trace.traceId, spanId: trace.spanId }),
  }
}

export const logsBody =
  (resource: Resource) =>
  (batch: ReadonlyArray<object>): string =>
    JSON.stringify({
      resourceLogs: [
        { resource: { attributes: attributesOf(resource) }, scopeLogs: [{ scope, logRecords: batch }] },
      ],
    })
