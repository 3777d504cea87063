// Settings of metrics and logs.
import { integer, oneOf, type Setting, trueOrFalse } from "./Setting.ts"

const logLevels = ["trace", "debug", "info", "warn", "error", "none"] as const

export const metricsSettings = {
  metricsAgeMs: {
    variable: "EDGEWISE_METRICS_AGE_MS",
    value: "MS",
    help: "the figures of /metrics are at most this old, in milliseconds; 0 reads them for every request",
    // Reading the figures takes 1.5 ms: at most 0.15 % of a core, at any rate of requests.
    fallback: 1_000,
    ...integer(0, 60_000),
  },
  metricsAuth: {
    variable: "EDGEWISE_METRICS_AUTH",
    help: "/metrics needs a superadmin key as its bearer credential",
    fallback: false,
    ...trueOrFalse,
  },
} as const satisfies Record<string, Setting<unknown>>

export const logSettings = {
  log: {
    variable: "EDGEWISE_LOG",
    value: "pretty|json",
    help: "log format",
    fallback: process.stdout.isTTY ? "pretty" : "json",
    fallbackText: "pretty on a terminal, else json",
    ...oneOf(["pretty", "json"]),
  },
  accessLog: {
    variable: "EDGEWISE_ACCESS_LOG",
    help: "write a log line for every response",
    // /metrics already counts all responses; lines are for operators who store them.
    fallback: false,
    ...trueOrFalse,
  },
  logLevel: {
    variable: "EDGEWISE_LOG_LEVEL",
    value: "LEVEL",
    help: "least severe level that is logged",
    allowed: `one of ${logLevels.join(", ")}`,
    fallback: "info",
    parse: oneOf(logLevels).parse,
  },
} as const satisfies Record<string, Setting<unknown>>
