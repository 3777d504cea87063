// Log lines for the operator about what failed and what was done about it: one structured line an event, at most one a
// second of a kind, with the number of lines that were left out since. Called by every folder that notices a failure.
// `docs/operations.md` lists the events; texts, prompts, transcripts and credentials never stand in a line.
import { Clock, Context, Effect } from "effect"
import { LogRate } from "./LogRate.ts"
import { plainLine } from "./PlainLine.ts"

/** Every event, with the level of its lines. */
export const logEvents = {
  "model cannot be loaded": "warn",
  "model loading": "info",
  "model ready": "info",
  "model threads limited": "warn",
  "model load failed": "error",
  "model refused for memory": "warn",
  "model unloaded": "info",
  "model unloaded while idle": "info",
  "model evicted": "info",
  "model not unloaded": "error",
  "engine crashed": "warn",
  "engine hung": "warn",
  "engine restarting": "info",
  "engine given up": "error",
  "engine output": "debug",
  "answer failed": "error",
  "answer broke off": "error",
  "answer refused": "warn",
  "session failed": "error",
  "transcription job failed": "error",
  "transcription job postponed": "warn",
  "decoder failed": "warn",
  "voice address not fetched": "warn",
  "store unavailable": "error",
} as const satisfies Readonly<Record<string, LogLevel>>

export type LogEvent = keyof typeof logEvents
export type LogLevel = "debug" | "info" | "warn" | "error"

export interface OperatorLine {
  readonly event: LogEvent
  /** Another level than the event's own. */
  readonly level?: LogLevel | undefined
  readonly model?: string | undefined
  /** `host`, or the uuid of a GPU. */
  readonly device?: string | undefined
  /** Why, in words. Shortened and freed of control characters here. */
  readonly reason?: string | undefined
  readonly requestId?: string | undefined
  /** What the operator can do, in words. */
  readonly action?: string | undefined
  /** Numbers and names beside these. */
  readonly facts?: Readonly<Record<string, string | number>>
  /** What else tells lines of one event and model apart, for the limit of one line a second: a status, a route. */
  readonly kind?: string
  /** Lines of this kind a second; 1 where absent. */
  readonly aSecond?: number
}

/** The limiter of this node. */
export const CurrentLogRate = Context.Reference<LogRate>("edgewise/domain/CurrentLogRate", {
  defaultValue: () => new LogRate(),
})

const severities = { debug: "Debug", info: "Info", warn: "Warn", error: "Error" } as const

const annotationsOf = (line: OperatorLine, suppressed: number): Record<string, string | number> => ({
  ...(line.model === undefined ? {} : { model: line.model }),
  ...(line.device === undefined ? {} : { device: line.device }),
  ...(line.reason === undefined ? {} : { reason: plainLine(line.reason) }),
  ...Object.fromEntries(
    Object.entries(line.facts ?? {}).map(([name, value]) => [
      name,
      typeof value === "string" ? plainLine(value) : value,
    ]),
  ),
  ...(line.requestId === undefined ? {} : { request_id: line.requestId }),
  ...(line.action === undefined ? {} : { action: line.action }),
  ...(suppressed === 0 ? {} : { suppressed }),
})

/** Writes the line, or counts it for the next line of its kind. */
export const report = (line: OperatorLine): Effect.Effect<void> =>
  Effect.withFiber((fiber) => {
    const level = line.level ?? logEvents[line.event]
    const nowMs = fiber.getRef(Clock.Clock).currentTimeMillisUnsafe()
    const kind = [line.event, level, line.model ?? "", line.kind ?? ""].join("\n")
    const suppressed = fiber.getRef(CurrentLogRate).admit(kind, nowMs, line.aSecond)
    return suppressed === undefined
      ? Effect.void
      : Effect.annotateLogs(
          Effect.logWithLevel(severities[level])(line.event),
          annotationsOf(line, suppressed),
        )
  })

/** The same for callbacks outside of fibers: with the loggers, levels and clock of where it was asked for. */
export const reporter: Effect.Effect<(line: OperatorLine) => void> = Effect.map(
  Effect.context<never>(),
  (context) => {
    const run = Effect.runForkWith(context)
    return (line) => void run(report(line))
  },
)
