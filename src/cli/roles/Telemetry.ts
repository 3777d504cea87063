// A node's telemetry as layers, chosen by the settings: its log, a line for each response, and spans and log records
// for a collector.
import { Context, Effect, Layer, Logger, References } from "effect"
import { OtlpSerialization } from "effect/observability"
import { launcher } from "#config/OtherVariables.ts"
import type { Config } from "#config/Settings.ts"
import type { NodeMeters } from "#http/NodeMeters.ts"
import type { EndedWork } from "#http/TracedWork.ts"
import { LineWriter } from "../../telemetry/LineWriter.ts"
import { accessRecord, entryText, jsonLogger, type LogEntry, prettyLogger } from "../../telemetry/LogLines.ts"
import { type LogRecord, logRecord, logsBody, tracesBody } from "../../telemetry/OtlpBodies.ts"
import { makeExporter } from "../../telemetry/OtlpExporter.ts"
import type { OtlpSettings, Protocol } from "../../telemetry/OtlpSettings.ts"
import { type Traced, traceOf, traceparentOf } from "../../telemetry/Trace.ts"

const levelNames = {
  trace: "Trace",
  debug: "Debug",
  info: "Info",
  warn: "Warn",
  error: "Error",
  none: "None",
} as const

const standardError = 2

/** Completes when the lines logged so far have been written: what is printed after it stands below them. */
export const LinesWritten = Context.Reference<Effect.Effect<void>>("edgewise/cli/LinesWritten", {
  defaultValue: () => Effect.void,
})

const watching = (meters: NodeMeters, watch: Parameters<NodeMeters["watch"]>[0]) =>
  Effect.acquireRelease(
    Effect.sync(() => meters.watch(watch)),
    (stop) => Effect.sync(stop),
  )

/** Standard output is for what the start prints; the log goes to standard error. */
const localLogger = Effect.fnUntraced(function* (config: Config, meters: NodeMeters) {
  const writer = yield* LineWriter.make<LogEntry>(
    launcher()?.log ?? standardError,
    entryText(config.log),
    meters,
  )
  if (config.accessLog) {
    yield* watching(meters, ({ method, notes, status }, route, endedMs) =>
      writer.push(accessRecord(method, route, status, notes, endedMs)),
    )
  }
  const push = (line: string) => writer.push(line)
  return {
    logger: config.log === "pretty" ? prettyLogger(push) : jsonLogger(push),
    written: writer.drained,
  }
})

/**
 * Five spans per request, built when they are sent: 64 requests block the event loop for 2.8 ms (measured on a busy
 * test machine).
 */
const requestsABatch = 64

const serializations = {
  "http/json": OtlpSerialization.layerJson,
  "http/protobuf": OtlpSerialization.layerProtobuf,
}

const senderOf = ({ resource }: OtlpSettings, protocol: Protocol) =>
  Effect.map(
    Effect.provide(OtlpSerialization.OtlpSerialization, serializations[protocol]),
    (serialization) => ({ resource, serialization }),
  )

const traces = Effect.fnUntraced(function* (otlp: OtlpSettings, url: string, meters: NodeMeters) {
  const batchSize = Math.min(otlp.batchSize, requestsABatch)
  const settings = { ...otlp, url, headers: otlp.tracesHeaders, batchSize }
  const sender = yield* senderOf(otlp, otlp.tracesProtocol)
  const exporter = yield* makeExporter<Traced>("traces", settings, meters, tracesBody(sender))
  yield* watching(meters, ({ method, notes, status }, route, endedMs) => {
    if (traceOf(notes).sampled) exporter.push({ notes, method, route, status, endedMs })
  })
  const ended = (work: EndedWork) => {
    if (traceOf(work.notes).sampled) exporter.push(work)
  }
  yield* Effect.acquireRelease(
    Effect.sync(() => {
      meters.tracer = { traceparentOf, ended }
    }),
    () =>
      Effect.sync(() => {
        meters.tracer = undefined
      }),
  )
})

const collectorLogger = Effect.fnUntraced(function* (otlp: OtlpSettings, url: string, meters: NodeMeters) {
  const settings = { ...otlp, url, headers: otlp.logsHeaders }
  const sender = yield* senderOf(otlp, otlp.logsProtocol)
  const exporter = yield* makeExporter<LogRecord>("logs", settings, meters, logsBody(sender))
  return Logger.make((options) =>
    exporter.push(logRecord(options, options.fiber.getRef(References.CurrentLogAnnotations))),
  )
})

/** The telemetry of the settings. Without a collector, no OTLP code runs. */
export const telemetry = (config: Config, otlp: OtlpSettings | undefined, meters: NodeMeters) =>
  Layer.unwrap(
    Effect.gen(function* () {
      const { logger, written } = yield* localLogger(config, meters)
      const loggers: Array<Logger.Logger<unknown, void>> = [logger]
      if (otlp?.tracesUrl !== undefined) yield* traces(otlp, otlp.tracesUrl, meters)
      if (otlp?.logsUrl !== undefined) loggers.push(yield* collectorLogger(otlp, otlp.logsUrl, meters))
      return Layer.mergeAll(
        Logger.layer(loggers),
        Layer.succeed(LinesWritten, written),
        Layer.succeed(References.MinimumLogLevel, levelNames[config.logLevel]),
      )
    }),
  )
