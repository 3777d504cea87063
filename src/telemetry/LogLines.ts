// Formats log lines, as JSON or as readable text: one for each log event, and one for each finished response. Pure.
// Lines hold ids and numbers, and the route instead of the path, because a path or query may hold anything.
import { Formatter, Logger } from "effect"
import { knownMethod, plainLine } from "#domain/process/PlainLine.ts"
import { CurrentRequest, noRequest, type RequestContext } from "#http/RequestContext.ts"

interface AccessRecord {
  readonly timeMs: number
  readonly requestId: string
  readonly method: string
  readonly route: string
  readonly status: number
  readonly durationMs: number
  readonly queueMs: number | undefined
  readonly firstUnitMs: number | undefined
  readonly model: string | undefined
}

/** A formatted line, or a record that is formatted when it is written. */
export type LogEntry = string | AccessRecord

const rounded = (ms: number): number => Math.round(ms * 10) / 10

const times = ({ firstUnitMs, queueMs }: AccessRecord) => ({
  ...(queueMs === undefined ? {} : { queue_ms: rounded(queueMs) }),
  ...(firstUnitMs === undefined ? {} : { first_unit_ms: rounded(firstUnitMs) }),
})

const accessJson = (record: AccessRecord): string =>
  JSON.stringify({
    message: "request",
    level: "INFO",
    timestamp: new Date(record.timeMs).toISOString(),
    request_id: record.requestId,
    annotations: {
      method: record.method,
      route: record.route,
      status: record.status,
      duration_ms: rounded(record.durationMs),
      ...times(record),
      ...(record.model === undefined ? {} : { model: record.model }),
    },
  })

const accessPretty = (record: AccessRecord): string => {
  const { durationMs, method, model, requestId, route, status, timeMs } = record
  const time = new Date(timeMs).toISOString().slice(11, 23)
  return `[${time}] ${method} ${route} ${status} ${rounded(durationMs)} ms ${model ?? "-"} ${requestId}`
}

export const entryText =
  (format: "json" | "pretty") =>
  (entry: LogEntry): string =>
    typeof entry === "string" ? entry : format === "json" ? accessJson(entry) : accessPretty(entry)

export const accessRecord = (
  method: string,
  route: string,
  status: number,
  notes: RequestContext,
  endedMs: number,
): AccessRecord => ({
  timeMs: performance.timeOrigin + endedMs,
  requestId: notes.requestId,
  method: knownMethod(method),
  route,
  status,
  durationMs: endedMs - notes.startedMs,
  queueMs: notes.queueMs,
  firstUnitMs: notes.firstUnitMs,
  model: notes.model,
})

/** The request that a log event belongs to. Undefined outside of a request. */
export const notesOf = ({ fiber }: Logger.Options<unknown>): RequestContext | undefined => {
  const notes = fiber.getRef(CurrentRequest)
  return notes === noRequest ? undefined : notes
}

/**
 * The program's log as JSON, with the id of the request: from the fiber, or from the annotation of a line that was
 * logged after the response ended.
 */
export const jsonLogger = (push: (line: string) => void): Logger.Logger<unknown, void> =>
  Logger.make((options) => {
    const event = Logger.formatStructured.log(options)
    const { request_id: annotated, ...annotations } = event.annotations
    const requestId = notesOf(options)?.requestId ?? annotated
    push(
      Formatter.formatJson(
        requestId === undefined ? event : { ...event, annotations, request_id: requestId },
      ),
    )
  })

/** A line of a terminal, at most: three of its rows. A guess. */
const terminalCharacters = 400

/** Left out in a terminal: `host` is where nearly every model is, and a load that begins is followed by how it ended. */
const isLeftOut = (name: string, value: unknown): boolean => name === "device" && value === "host"
const leftOutEvents = new Set(["model loading"])

/** One event as a line for a person: time, level unless it is INFO, model, message and the facts. */
const prettyLine = (event: ReturnType<typeof Logger.formatStructured.log>): string => {
  const { action, model, reason, summary, ...facts } = event.annotations
  const text = typeof event.message === "string" ? event.message : Formatter.formatJson(event.message)
  const sentence = [model, text, summary, reason]
    .filter((part) => part !== undefined && part !== "")
    .join(": ")
  const named = Object.entries(facts)
    .filter(([name, value]) => !isLeftOut(name, value))
    .map(([name, value]) => `${name}=${typeof value === "string" ? value : Formatter.formatJson(value)}`)
  const level = event.level === "INFO" ? [] : [event.level]
  const parts = [
    ...level,
    sentence,
    ...named,
    ...(action === undefined ? [] : [`(to do: ${String(action)})`]),
  ]
  const line = `[${event.timestamp.slice(11, 23)}] ${plainLine(parts.join(" "), terminalCharacters)}`
  return event.cause === undefined ? line : `${line}\n${event.cause}`
}

/** The program's log for a terminal: one line for each event. */
export const prettyLogger = (push: (line: string) => void): Logger.Logger<unknown, void> =>
  Logger.make((options) => {
    const event = Logger.formatStructured.log(options)
    if (leftOutEvents.has(String(event.message))) return
    push(prettyLine(event))
  })
