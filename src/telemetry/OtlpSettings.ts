// Parses where traces and logs are sent, from OpenTelemetry's environment variables. Pure; Config passes the
// environment.

const protocols = ["http/json", "http/protobuf"] as const
/** The format of a body. */
export type Protocol = (typeof protocols)[number]

export interface OtlpSettings {
  /** Absent if the signal is not exported. */
  readonly tracesUrl: string | undefined
  readonly logsUrl: string | undefined
  readonly tracesHeaders: Readonly<Record<string, string>>
  readonly logsHeaders: Readonly<Record<string, string>>
  readonly tracesProtocol: Protocol
  readonly logsProtocol: Protocol
  readonly resource: Readonly<Record<string, string>>
  readonly timeoutMs: number
  /** Pause between two exports. A full batch is sent at once. */
  readonly delayMs: number
  readonly batchSize: number
  /** Longest queue of records; more are dropped and counted. */
  readonly queueSize: number
}

/** A variable whose value cannot be used. A value that may be a credential (`secret`) is not repeated. */
interface OtlpProblem {
  readonly variable: string
  readonly value: string
  readonly allowed: string
}

type Env = Readonly<Record<string, string | undefined>>

class Problem extends Error {
  readonly problem: OtlpProblem
  constructor(problem: OtlpProblem) {
    super(problem.variable)
    this.problem = problem
  }
}

const refuse = (variable: string, value: string, allowed: string): never => {
  throw new Problem({ variable, value, allowed })
}

const urlOf = (variable: string, text: string): string => {
  const known = URL.canParse(text) && /^https?:$/.test(new URL(text).protocol)
  if (!known || new URL(text).username !== "") {
    refuse(variable, text.replace(/\/\/[^@/]*@/, "//…@"), "an http or https address without credentials")
  }
  return text.replace(/\/+$/, "")
}

/** `name=value,name=value`, percent-encoded (OpenTelemetry's format of headers). */
const pairs = (variable: string, text: string, secret: boolean): Record<string, string> => {
  const found: Record<string, string> = {}
  for (const pair of text.split(",").filter((one) => one.trim() !== "")) {
    const at = pair.indexOf("=")
    const name = pair.slice(0, at).trim()
    let value: string
    try {
      value = decodeURIComponent(pair.slice(at + 1).trim())
    } catch {
      value = "\n"
    }
    if (at <= 0 || !/^[A-Za-z0-9._-]+$/.test(name) || /[\r\n]/.test(value)) {
      refuse(variable, secret ? "…" : text, "name=value pairs, separated by commas")
    }
    found[secret ? name.toLowerCase() : name] = value
  }
  return found
}

const integer = (env: Env, variable: string, fallback: number, maximum: number): number => {
  const text = env[variable] ?? ""
  if (text === "") return fallback
  const value = /^\d{1,9}$/.test(text) ? Number(text) : 0
  return value >= 1 && value <= maximum ? value : refuse(variable, text, `an integer from 1 to ${maximum}`)
}

const isOff = (env: Env, signal: "TRACES" | "LOGS"): boolean => {
  const variable = `OTEL_${signal}_EXPORTER`
  const text = env[variable] || "otlp"
  if (text !== "otlp" && text !== "none") refuse(variable, text, "otlp or none")
  return text === "none"
}

const signalUrl = (env: Env, signal: "TRACES" | "LOGS", path: string): string | undefined => {
  if (isOff(env, signal)) return undefined
  const own = `OTEL_EXPORTER_OTLP_${signal}_ENDPOINT`
  if (env[own]) return urlOf(own, env[own])
  const base = env.OTEL_EXPORTER_OTLP_ENDPOINT
  return base ? `${urlOf("OTEL_EXPORTER_OTLP_ENDPOINT", base)}${path}` : undefined
}

/** The variable of one signal, or that of both, or JSON. Each that is set must be one that is spoken. */
const protocolOf = (env: Env, signal: "TRACES" | "LOGS"): Protocol => {
  const names = [`OTEL_EXPORTER_OTLP_${signal}_PROTOCOL`, "OTEL_EXPORTER_OTLP_PROTOCOL"]
  const chosen = names.flatMap((name) => {
    const text = env[name] || undefined
    if (text === undefined) return []
    return protocols.find((known) => known === text) ?? refuse(name, text, protocols.join(" or "))
  })
  return chosen[0] ?? "http/json"
}

const parse = (env: Env): OtlpSettings | undefined => {
  if ((env.OTEL_SDK_DISABLED ?? "").toLowerCase() === "true") return undefined
  const tracesUrl = signalUrl(env, "TRACES", "/v1/traces")
  const logsUrl = signalUrl(env, "LOGS", "/v1/logs")
  if (tracesUrl === undefined && logsUrl === undefined) return undefined
  const headers = (name: string) => pairs(name, env[name] ?? "", true)
  const common = headers("OTEL_EXPORTER_OTLP_HEADERS")
  const attributes = "OTEL_RESOURCE_ATTRIBUTES"
  return {
    tracesUrl,
    logsUrl,
    tracesHeaders: { ...common, ...headers("OTEL_EXPORTER_OTLP_TRACES_HEADERS") },
    logsHeaders: { ...common, ...headers("OTEL_EXPORTER_OTLP_LOGS_HEADERS") },
    tracesProtocol: protocolOf(env, "TRACES"),
    logsProtocol: protocolOf(env, "LOGS"),
    resource: {
      "service.name": "edgewise",
      ...pairs(attributes, env[attributes] ?? "", false),
      ...(env.OTEL_SERVICE_NAME ? { "service.name": env.OTEL_SERVICE_NAME } : {}),
    },
    // OpenTelemetry's defaults.
    timeoutMs: integer(env, "OTEL_EXPORTER_OTLP_TIMEOUT", 10_000, 600_000),
    delayMs: integer(env, "OTEL_BSP_SCHEDULE_DELAY", 5_000, 3_600_000),
    batchSize: integer(env, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512, 512),
    queueSize: integer(env, "OTEL_BSP_MAX_QUEUE_SIZE", 2_048, 100_000),
  }
}

/** Undefined if nothing is to be exported. */
export const parseOtlp = (env: Env): { readonly settings: OtlpSettings | undefined } | OtlpProblem => {
  try {
    return { settings: parse(env) }
  } catch (cause) {
    if (cause instanceof Problem) return cause.problem
    throw cause
  }
}
