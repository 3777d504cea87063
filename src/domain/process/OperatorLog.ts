// Log lines for the operator about failures and what was done about them: one structured line per event, at most one a
// second of each kind, with the number of suppressed lines. `docs/operations.md` lists the events. Texts, prompts,
// transcripts and credentials are never logged.
import { Clock, Context, Effect } from "effect"
import { LogRate } from "./LogRate.ts"
import { plainLine } from "./PlainLine.ts"

/** Every event, with the level of its lines. */
export const logEvents = {
  "node crashed and started again": "error",
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
  "address not fetched": "warn",
  "store unavailable": "error",
} as const satisfies Readonly<Record<string, LogLevel>>

export type LogEvent = keyof typeof logEvents
export type LogLevel = "debug" | "info" | "warn" | "error"

export interface OperatorLine {
  readonly event: LogEvent
  /** Replaces the event's own level. */
  readonly level?: LogLevel | undefined
  readonly model?: string | undefined
  /** `host`, or the uuid of a GPU. */
  readonly device?: string | undefined
  /** The reason in words. Shortened and stripped of control characters here. */
  readonly reason?: string | undefined
  readonly requestId?: string | undefined
  /** What the operator can do, in words. */
  readonly action?: string | undefined
  /** Further numbers and names. */
  readonly facts?: Readonly<Record<string, string | number>>
  /** Distinguishes lines of one event and model for the limit of one line a second: a status, a route. */
  readonly kind?: string
  /** Lines of this kind a second. Default: 1. */
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

/** The same for callbacks outside of fibers, with the loggers, levels and clock of the fiber that created it. */
export const reporter: Effect.Effect<(line: OperatorLine) => void> = Effect.map(
  Effect.context<never>(),
  (context) => {
    const run = Effect.runForkWith(context)
    return (line) => void run(report(line))
  },
)
