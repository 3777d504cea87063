// The program's log lines as objects, for tests that read or count them. Has its own limiter of lines.
import { Layer, Logger, References } from "effect"
import { LogRate } from "#domain/process/LogRate.ts"
import { CurrentLogRate } from "#domain/process/OperatorLog.ts"

interface LogLine {
  readonly level: string
  readonly message: unknown
  readonly annotations: Readonly<Record<string, unknown>>
}

export const collectLines = () => {
  const lines: Array<LogLine> = []
  const logger = Logger.make<unknown, void>((options) => {
    const { annotations, level, message } = Logger.formatStructured.log(options)
    lines.push({ level, message, annotations })
  })
  const layer = Layer.mergeAll(
    Logger.layer([logger]),
    Layer.succeed(References.MinimumLogLevel, "Debug" as const),
    Layer.succeed(CurrentLogRate, new LogRate()),
  )
  return { lines, layer }
}
