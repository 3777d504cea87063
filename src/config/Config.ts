// All settings: name, default, unit, range and reason. Each is an environment variable and a flag of `serve`; the flag
// wins. A bad value stops the start with a line that names the variable, the value and what is allowed; so does an
// unknown variable that looks like a setting.
import { resolve } from "node:path"
import { fileURLToPath } from "node:url"
import { Effect, Schema } from "effect"
import { parseProxies } from "#domain/access/ClientAddress.ts"
import { devKeySettings } from "#domain/access/DevelopmentKey.ts"
import { nodeRegions } from "#domain/regions/Region.ts"
import { type BadRegions, regionCodesInForce } from "#store/files/RegionsFile.ts"
import { databaseUrlRule, hidePassword, parseDatabaseUrl } from "#store/sql/DatabaseUrl.ts"
import { type OtlpSettings, parseOtlp } from "../telemetry/OtlpSettings.ts"
import { unknownVariables } from "./Environment.ts"

export class BadSetting extends Schema.TaggedError<BadSetting>()("BadSetting", {
  variable: Schema.String,
  value: Schema.String,
  allowed: Schema.String,
  /** One line for each other wrong setting. */
  others: Schema.optionalKey(Schema.Array(Schema.String)),
}) {
  override get message(): string {
    return `${this.variable}: ${JSON.stringify(this.value)} is not allowed; ${this.allowed}`
  }

  get lines(): ReadonlyArray<string> {
    return [this.message, ...(this.others ?? [])]
  }

  readonly exitStatus = 2
}

interface Setting<A> {
  readonly variable: string
  /** The flag's name without `--`. */
  readonly flag: string
  readonly help: string
  readonly allowed: string
  readonly fallback: A
  /** Hides parts of a value that must not be shown. Absent: all of it may be shown. */
  readonly shown?: (text: string) => string
  /** Undefined if the text is not allowed. */
  readonly parse: (text: string) => A | undefined
}

const integer = (minimum: number, maximum: number) => (text: string) => {
  const value = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN
  return value >= minimum && value <= maximum ? value : undefined
}

const oneOf =
  <const A extends string>(values: ReadonlyArray<A>) =>
  (text: string): A | undefined =>
    values.find((value) => value === text)

const parseBoolean = (text: string): boolean | undefined =>
  text === "true" ? true : text === "false" ? false : undefined

const nonEmpty = (text: string) => (text === "" ? undefined : text)

const port = (variable: string, flag: string, fallback: number, role: string): Setting<number> => ({
  variable,
  flag,
  help: `port of the ${role} listener; 0 picks a free one`,
  allowed: "an integer from 0 to 65535",
  fallback,
  parse: integer(0, 65_535),
})

/** The catalog that comes with the product. */
export const builtInCatalog = fileURLToPath(new URL("../../models/catalog.json", import.meta.url))

export const roles = ["edge", "auth", "router"] as const
export type Role = (typeof roles)[number]

const parseRoles = (text: string): ReadonlyArray<Role> | undefined => {
  const named = text.split(",").map((name) => roles.find((role) => role === name.trim()))
  return named.some((role) => role === undefined) ? undefined : roles.filter((role) => named.includes(role))
}

const parseUrl = (text: string): string | undefined =>
  URL.canParse(text) && /^https?:$/.test(new URL(text).protocol) ? text : undefined

const trustNone = (_address: string): boolean => false

export const logLevels = ["trace", "debug", "info", "warn", "error", "none"] as const

export const settings = {
  host: {
    variable: "EDGEWISE_HOST",
    flag: "host",
    help: "address to bind",
    allowed: "an IPv4 or IPv6 address, e.g. 127.0.0.1 or 0.0.0.0",
    fallback: "127.0.0.1",
    parse: (text: string) => (/^[0-9.]+$|^[0-9a-fA-F:.]+$/.test(text) ? text : undefined),
  },
  roles: {
    variable: "EDGEWISE_ROLES",
    flag: "roles",
    help: "what this process serves",
    allowed: "a list of edge, auth and router, separated by commas",
    fallback: roles,
    parse: parseRoles,
  },
  port: port("EDGEWISE_PORT", "port", 8080, "edge"),
  authPort: port("EDGEWISE_AUTH_PORT", "auth-port", 8081, "auth"),
  routerPort: port("EDGEWISE_ROUTER_PORT", "router-port", 8082, "router"),
  tls: {
    variable: "EDGEWISE_TLS",
    flag: "tls",
    help: "self-signed makes a certificate; auto uses EDGEWISE_TLS_CERT where it is set; off is plain HTTP",
    allowed: "auto, self-signed or off",
    fallback: "auto",
    parse: oneOf(["auto", "self-signed", "off"]),
  },
  tlsCert: {
    variable: "EDGEWISE_TLS_CERT",
    flag: "tls-cert",
    help: "certificate with its chain, for TLS on every listener; read again when it changes and on SIGHUP",
    allowed: "the path of a PEM file",
    fallback: "",
    parse: nonEmpty,
  },
  tlsKey: {
    variable: "EDGEWISE_TLS_KEY",
    flag: "tls-key",
    help: "private key of the certificate, without a password",
    allowed: "the path of a PEM file",
    fallback: "",
    parse: nonEmpty,
  },
  dataDir: {
    variable: "EDGEWISE_DATA_DIR",
    flag: "data-dir",
    help: "store, keys, uploads, pulled weights",
    allowed: "a path",
    fallback: ".edgewise",
    parse: nonEmpty,
  },
  databaseUrl: {
    variable: "EDGEWISE_DATABASE_URL",
    flag: "database-url",
    help: "Postgres database that several nodes share; without it, SQLite in the data directory",
    allowed: databaseUrlRule,
    fallback: "",
    parse: parseDatabaseUrl,
    shown: hidePassword,
  },
  region: {
    variable: "EDGEWISE_REGION",
    flag: "region",
    help: "region code of this node: local, a built-in one, or one of the regions file if that is set; `local` deploys every model of the catalog",
    allowed: `a region code; built in are ${nodeRegions.join(", ")}`,
    fallback: "local",
    // Checked against the regions file after that is read.
    parse: (text: string) => (/^[a-z0-9][a-z0-9-]{0,31}$/.test(text) ? text : undefined),
  },
  catalog: {
    variable: "EDGEWISE_CATALOG",
    flag: "catalog",
    help: "model catalog file",
    allowed: "the path of a catalog file (JSON)",
    fallback: builtInCatalog,
    parse: nonEmpty,
  },
  transport: {
    variable: "EDGEWISE_TRANSPORT",
    flag: "transport",
    help: "HTTP server library; uWebSockets.js is the only one at present",
    allowed: "uws or auto",
    fallback: "auto",
    parse: oneOf(["uws", "auto"]),
  },
  decoder: {
    variable: "EDGEWISE_DECODER",
    flag: "decoder",
    help: "library that decodes audio files; the FFmpeg of the package node-av is the only one at present",
    allowed: "node-av or auto",
    fallback: "auto",
    parse: oneOf(["node-av", "auto"]),
  },
  openaiAliases: {
    variable: "EDGEWISE_OPENAI_ALIASES",
    flag: "openai-aliases",
    help: "accept OpenAI's names of speech and transcription models and of voices, such as tts-1 and alloy",
    allowed: "true or false",
    fallback: true,
    parse: parseBoolean,
  },
  rateLimit: {
    variable: "EDGEWISE_RATE_LIMIT",
    flag: "rate-limit",
    help: "requests per user and minute on this node; 0 turns the limit off",
    allowed: "an integer from 0 to 1000000",
    fallback: 100,
    parse: integer(0, 1_000_000),
  },
  authFailureLimit: {
    variable: "EDGEWISE_AUTH_FAILURE_LIMIT",
    flag: "auth-failure-limit",
    help: "wrong credentials per address and minute at this edge; 0 turns the limit off",
    allowed: "an integer from 0 to 1000000",
    // A guess: a refusal costs 0.2 ms, so this many take 0.1 % of a core; an office behind one address stays below.
    fallback: 300,
    parse: integer(0, 1_000_000),
  },
  anonymousRate: {
    variable: "EDGEWISE_ANONYMOUS_RATE",
    flag: "anonymous-rate",
    help: "requests per address and second without a valid credential at this edge; 0 turns the limit off",
    allowed: "an integer from 0 to 1000000",
    // A guess: at 50 µs each they take 5 % of a core. All clients of a proxy that is not listed count as one address.
    fallback: 1_000,
    parse: integer(0, 1_000_000),
  },
  maxConnections: {
    variable: "EDGEWISE_MAX_CONNECTIONS",
    flag: "max-connections",
    help: "open connections of each listener, WebSockets not counted; further ones are closed at once",
    allowed: "an integer from 16 to 1000000",
    fallback: 8_192,
    parse: integer(16, 1_000_000),
  },
  chunkedBodies: {
    variable: "EDGEWISE_CHUNKED_BODIES",
    flag: "chunked-bodies",
    help: "accept chunked request bodies; false answers 411 to a body without Content-Length",
    allowed: "true or false",
    // The parser of chunk lines is more lenient than the standard (docs/security.md), but many clients send uploads in
    // chunks.
    fallback: true,
    parse: parseBoolean,
  },
  metricsAgeMs: {
    variable: "EDGEWISE_METRICS_AGE_MS",
    flag: "metrics-age-ms",
    help: "the figures of /metrics are at most this old, in milliseconds; 0 reads them for every request",
    allowed: "an integer from 0 to 60000",
    // Reading the figures takes 1.5 ms: at most 0.15 % of a core, at any rate of requests.
    fallback: 1_000,
    parse: integer(0, 60_000),
  },
  metricsAuth: {
    variable: "EDGEWISE_METRICS_AUTH",
    flag: "metrics-auth",
    help: "/metrics needs a superadmin key as its bearer credential",
    allowed: "true or false",
    fallback: false,
    parse: parseBoolean,
  },
  idleUnloadSeconds: {
    variable: "EDGEWISE_IDLE_UNLOAD_SECONDS",
    flag: "idle-unload-seconds",
    help: "a model without a request for this long is unloaded until the next one; 0 keeps it",
    allowed: "an integer from 0 to 31536000",
    fallback: 0,
    parse: integer(0, 31_536_000),
  },
  confine: {
    variable: "EDGEWISE_CONFINE",
    flag: "confine",
    help: "confine engines and decoders as far as this machine can; false only to find out why an engine does not load",
    allowed: "true or false",
    fallback: true,
    parse: parseBoolean,
  },
  evictIdle: {
    variable: "EDGEWISE_EVICT_IDLE",
    flag: "evict-idle",
    help: "unload idle models when another one needs their memory",
    allowed: "true or false",
    fallback: false,
    parse: parseBoolean,
  },
  memoryMb: {
    variable: "EDGEWISE_MEMORY_MB",
    flag: "memory-mb",
    help: "memory that the node and its models may use; 0 means nine tenths of the machine's or container's",
    allowed: "an integer from 0 to 100000000",
    fallback: 0,
    parse: integer(0, 100_000_000),
  },
  drainSeconds: {
    variable: "EDGEWISE_DRAIN_SECONDS",
    flag: "drain-seconds",
    help: "how long requests in flight may take to finish after SIGTERM",
    allowed: "an integer from 0 to 3600",
    fallback: 10,
    parse: integer(0, 3_600),
  },
  devKey: {
    variable: "EDGEWISE_DEV_KEY",
    flag: "dev-key",
    help: "from where the development key is accepted; `loopback` makes none on a shared database or beyond loopback",
    allowed: `one of ${devKeySettings.join(", ")}`,
    fallback: "loopback",
    parse: oneOf(devKeySettings),
  },
  sessionSeconds: {
    variable: "EDGEWISE_SESSION_SECONDS",
    flag: "session-seconds",
    help: "lifetime of a session token",
    allowed: "an integer from 60 to 86400",
    // Protocol 17.4.
    fallback: 3_600,
    parse: integer(60, 86_400),
  },
  signingKeyDays: {
    variable: "EDGEWISE_SIGNING_KEY_DAYS",
    flag: "signing-key-days",
    help: "age at which the key that signs session tokens is replaced",
    allowed: "an integer from 1 to 3650",
    // A guess: frequent enough that rotation is routine.
    fallback: 30,
    parse: integer(1, 3_650),
  },
  authJwksUrl: {
    variable: "EDGEWISE_AUTH_JWKS_URL",
    flag: "auth-jwks-url",
    help: "where an edge fetches the public keys of session tokens; default: from the data directory",
    allowed: "an http or https address, e.g. http://127.0.0.1:8081/.well-known/jwks.json",
    fallback: "",
    parse: parseUrl,
  },
  trustedProxies: {
    variable: "EDGEWISE_TRUSTED_PROXIES",
    flag: "trusted-proxies",
    help: "proxies whose X-Forwarded-For and CF-IPCountry headers are trusted; default: none",
    allowed: "addresses and CIDR blocks, separated by commas, e.g. 10.0.0.0/8,::1",
    fallback: trustNone,
    parse: parseProxies,
  },
  edgeDomain: {
    variable: "EDGEWISE_EDGE_DOMAIN",
    flag: "edge-domain",
    help: "domain of the edges' addresses, https://api.<region>.edge.<domain>; without it the router names only this node",
    allowed: "a domain name, e.g. example.com",
    fallback: "",
    parse: (text: string) => (/^[a-z0-9](?:[a-z0-9.-]{0,200}[a-z0-9])?$/.test(text) ? text : undefined),
  },
  regions: {
    variable: "EDGEWISE_REGIONS",
    flag: "regions",
    help: "regions file of the router; default: the built-in regions",
    allowed: "the path of a regions file (JSON)",
    fallback: "",
    parse: nonEmpty,
  },
  routeTtlSeconds: {
    variable: "EDGEWISE_ROUTE_TTL_SECONDS",
    flag: "route-ttl-seconds",
    help: "how long a client may keep the router's answer",
    allowed: "an integer from 0 to 86400",
    // A guess: clients leave an unhealthy region within a minute.
    fallback: 60,
    parse: integer(0, 86_400),
  },
  regionHealthSeconds: {
    variable: "EDGEWISE_REGION_HEALTH_SECONDS",
    flag: "region-health-seconds",
    help: "how often the router probes each region's health and round trip; 0 turns the probes off",
    allowed: "an integer from 0 to 3600",
    fallback: 0,
    parse: integer(0, 3_600),
  },
  geoipDb: {
    variable: "EDGEWISE_GEOIP_DB",
    flag: "geoip-db",
    help: "MaxMind-format file with the places of IP addresses, for the router",
    allowed: "the path of a .mmdb file",
    fallback: "",
    parse: nonEmpty,
  },
  log: {
    variable: "EDGEWISE_LOG",
    flag: "log",
    help: "log format; default: pretty on a terminal, else json",
    allowed: "pretty or json",
    fallback: process.stdout.isTTY ? "pretty" : "json",
    parse: oneOf(["pretty", "json"]),
  },
  accessLog: {
    variable: "EDGEWISE_ACCESS_LOG",
    flag: "access-log",
    help: "write a log line for every response",
    allowed: "true or false",
    // /metrics already counts all responses; lines are for operators who store them.
    fallback: false,
    parse: parseBoolean,
  },
  logLevel: {
    variable: "EDGEWISE_LOG_LEVEL",
    flag: "log-level",
    help: "least severe level that is logged",
    allowed: `one of ${logLevels.join(", ")}`,
    fallback: "info",
    parse: oneOf(logLevels),
  },
} as const satisfies Record<string, Setting<unknown>>

type Settings = typeof settings
export type SettingName = keyof Settings
type ValueOf<S> = S extends { readonly parse: (text: string) => infer A | undefined }
  ? Exclude<A, undefined>
  : never
export type Config = { readonly [K in SettingName]: ValueOf<Settings[K]> }

type Flags = Partial<Record<SettingName, string>>

/** A node's region must be one of the regions file in force. */
const checkRegion = ({ region, regions }: Config): Effect.Effect<void, BadSetting | BadRegions> =>
  Effect.gen(function* () {
    if (region === settings.region.fallback) return
    const codes = yield* regionCodesInForce(regions)
    if (codes.includes(region)) return
    const where = regions === "" ? "" : ` of ${regions}`
    const allowed = `allowed is a region code${where}: ${codes.join(", ")}`
    return yield* new BadSetting({ variable: settings.region.variable, value: region, allowed })
  })

/** Two roles of a process cannot listen on the same port. */
const checkPorts = (config: Config): Effect.Effect<void, BadSetting> => {
  const names = { edge: "port", auth: "authPort", router: "routerPort" } as const
  const used = new Map<number, string>()
  for (const role of config.roles) {
    const { variable } = settings[names[role]]
    const port = config[names[role]]
    const other = used.get(port)
    if (other !== undefined && port !== 0) {
      const allowed = `it is the port of ${other} too; each role needs its own`
      return Effect.fail(new BadSetting({ variable, value: String(port), allowed }))
    }
    used.set(port, variable)
  }
  return Effect.void
}

/** Settings by flag (undefined if not given), then environment, then default. */
export const load = (
  flags: Flags,
  env: NodeJS.ProcessEnv = process.env,
): Effect.Effect<Config, BadSetting | BadRegions> =>
  Effect.gen(function* () {
    const values: Record<string, unknown> = {}
    const wrong: Array<BadSetting> = []
    for (const [name, setting] of Object.entries(settings)) {
      const text = flags[name as SettingName] ?? env[setting.variable]
      if (text === undefined || (text === "" && flags[name as SettingName] === undefined)) {
        values[name] = setting.fallback
        continue
      }
      const value = setting.parse(text)
      values[name] = value
      if (value === undefined) {
        const shown = "shown" in setting ? setting.shown(text) : text
        const allowed = `allowed is ${setting.allowed}`
        wrong.push(new BadSetting({ variable: setting.variable, value: shown.slice(0, 200), allowed }))
      }
    }
    const [first, ...others] = wrong
    if (first !== undefined) {
      const { allowed, value, variable } = first
      return yield* new BadSetting({ variable, value, allowed, others: others.map(({ message }) => message) })
    }
    const config = values as Config
    yield* checkPorts(config)
    yield* checkRegion(config)
    return { ...config, dataDir: resolve(config.dataDir), catalog: resolve(config.catalog) }
  })

/** Variables with the settings' prefix that a command reads and that are not settings of a node. */
const fakeEnginesVariable = "EDGEWISE_FAKE_ENGINES"

const otherVariables = ["EDGEWISE_API_KEY", fakeEnginesVariable]

/** One line for each environment variable that looks like a setting and is none. */
export const environmentMistakes = (env: NodeJS.ProcessEnv = process.env): ReadonlyArray<string> =>
  unknownVariables(env, [...Object.values(settings).map(({ variable }) => variable), ...otherVariables])

/**
 * Region codes that the catalog's entries may name. Undefined for the built-in catalog, which names built-in regions
 * and must also work with a regions file that lacks them.
 */
export const catalogRegions = ({
  catalog,
  regions,
}: Config): Effect.Effect<ReadonlyArray<string> | undefined, BadRegions> =>
  catalog === builtInCatalog ? Effect.succeed(undefined) : regionCodesInForce(regions)

/** OpenTelemetry's own variables. Undefined if nothing is to be exported. */
export const otlpSettings = (
  env: NodeJS.ProcessEnv = process.env,
): Effect.Effect<OtlpSettings | undefined, BadSetting> => {
  const parsed = parseOtlp(env)
  return "settings" in parsed
    ? Effect.succeed(parsed.settings)
    : Effect.fail(new BadSetting({ ...parsed, allowed: `allowed is ${parsed.allowed}` }))
}

/** CUDA's own variable: the GPUs that processes may use. */
export const visibleGpus = (env: NodeJS.ProcessEnv = process.env): string | undefined =>
  env.CUDA_VISIBLE_DEVICES

/**
 * Whether a catalog may name the fake adapters, which answer by a script and need no weights: for tests and for load tests of
 * a network path. Not a flag, because no node that serves people needs it.
 */
export const hasFakeEngines = (env: NodeJS.ProcessEnv = process.env): boolean =>
  env[fakeEnginesVariable] === "true"

/** HF_HUB_OFFLINE, with the values that the hub's own tools accept: nothing is pulled. */
export const isHubOffline = (env: NodeJS.ProcessEnv = process.env): boolean =>
  ["1", "on", "yes", "true"].includes((env.HF_HUB_OFFLINE ?? "").toLowerCase())

/**
 * The model hub's own variables, for `models pull` and for a node that pulls. The token has no flag, because a command
 * line is visible to other users.
 */
export interface HubSettings {
  /** Without a trailing slash. */
  readonly endpoint: string
  readonly token: string | undefined
}

export const hubSettings = (env: NodeJS.ProcessEnv = process.env): Effect.Effect<HubSettings, BadSetting> =>
  Effect.gen(function* () {
    const text = env.HF_ENDPOINT || "https://huggingface.co"
    const bad = (variable: string, value: string, allowed: string) =>
      new BadSetting({ variable, value, allowed: `allowed is ${allowed}` })
    const url = parseUrl(text) === undefined ? undefined : new URL(text)
    if (url === undefined || url.username !== "" || url.search !== "" || url.hash !== "") {
      const shown = text.replace(/\/\/[^@/]*@/, "//…@")
      return yield* bad("HF_ENDPOINT", shown, "an http or https address without credentials or a query")
    }
    const token = env.HF_TOKEN === undefined || env.HF_TOKEN === "" ? undefined : env.HF_TOKEN
    // The characters allowed in a header. The value itself is never shown.
    if (token !== undefined && !/^[\x21-\x7e]{1,512}$/.test(token)) {
      return yield* bad("HF_TOKEN", "…", "a token of visible ASCII characters")
    }
    return { endpoint: text.replace(/\/+$/, ""), token }
  })
