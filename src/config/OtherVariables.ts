// Environment variables that are not settings of the node: those of other programs and standards, which edgewise reads
// too, and the switch of the fake adapters.
import { Effect, Option, Schema } from "effect"
import type { S3Access } from "#store/files/S3Address.ts"
import { type OtlpSettings, parseOtlp } from "../telemetry/OtlpSettings.ts"
import { BadSetting } from "./BadSetting.ts"
import { parseUrl } from "./settings/Setting.ts"

const fakeEnginesVariable = "EDGEWISE_FAKE_ENGINES"
const launcherVariable = "EDGEWISE_LAUNCHER"

/** Variables with the settings' prefix that a command reads and that are not settings of a node. */
export const otherVariables = ["EDGEWISE_API_KEY", fakeEnginesVariable, launcherVariable]

const Port = Schema.optionalKey(Schema.Int)

/** What the process that keeps a node running (bin/child.js) tells the node when it starts it. */
const Launcher = Schema.Struct({
  /** The file descriptor for the log. */
  log: Schema.Int,
  /** On which the node listened before it crashed. */
  ports: Schema.Struct({ edge: Port, auth: Port, router: Port }),
  /** How the node ended before this start. */
  crash: Schema.optionalKey(
    Schema.Struct({
      /** Its signal or exit status. */
      end: Schema.String,
      /** Restarts in the period, with this one. */
      restarts: Schema.Int,
      /** From that end to this start, milliseconds. */
      afterMs: Schema.Finite,
      /** The last lines that it printed to standard error beside its log. */
      lines: Schema.Array(Schema.String),
    }),
  ),
})
type Launcher = typeof Launcher.Type

const decodeLauncher = Schema.decodeUnknownOption(Schema.fromJsonString(Launcher))

/** Undefined if the node was not started by that process. */
export const launcher = (): Launcher | undefined =>
  Option.getOrUndefined(decodeLauncher(process.env[launcherVariable]))

/** OpenTelemetry's own variables. Undefined if nothing is to be exported. */
export const otlpSettings = (): Effect.Effect<OtlpSettings | undefined, BadSetting> => {
  const parsed = parseOtlp(process.env)
  return "settings" in parsed
    ? Effect.succeed(parsed.settings)
    : Effect.fail(new BadSetting({ ...parsed, allowed: `allowed is ${parsed.allowed}` }))
}

/** The system's own variable: the folders where programs are sought. */
export const programFolders = (): string => process.env.PATH ?? ""

/** CUDA's own variable: the GPUs that processes may use. */
export const visibleGpus = (): string | undefined => process.env.CUDA_VISIBLE_DEVICES

/**
 * Whether a catalog may name the fake adapters, which answer by a script and need no weights: for tests and for load tests of
 * a network path. Not a flag, because no node that serves people needs it.
 */
export const hasFakeEngines = (): boolean => process.env[fakeEnginesVariable] === "true"

/** Whether output may have colours, by the rule of no-color.org and the terminal's own variable. */
export const hasColours = (): boolean => (process.env.NO_COLOR ?? "") === "" && process.env.TERM !== "dumb"

/** HF_HUB_OFFLINE, with the values that the hub's own tools accept: nothing is pulled. */
export const isHubOffline = (): boolean =>
  ["1", "on", "yes", "true"].includes((process.env.HF_HUB_OFFLINE ?? "").toLowerCase())

/**
 * The model hub's own variables, for `models pull` and for a node that pulls. The token has no flag, because a command
 * line is visible to other users.
 */
export interface HubSettings {
  /** Without a trailing slash. */
  readonly endpoint: string
  readonly token: string | undefined
}

export const hubSettings = (): Effect.Effect<HubSettings, BadSetting> =>
  Effect.gen(function* () {
    const { HF_ENDPOINT, HF_TOKEN } = process.env
    const text = HF_ENDPOINT || "https://huggingface.co"
    const bad = (variable: string, value: string, allowed: string) =>
      new BadSetting({ variable, value, allowed: `allowed is ${allowed}` })
    const url = parseUrl(text) === undefined ? undefined : new URL(text)
    if (url === undefined || url.username !== "" || url.search !== "" || url.hash !== "") {
      const shown = text.replace(/\/\/[^@/]*@/, "//…@")
      return yield* bad("HF_ENDPOINT", shown, "an http or https address without credentials or a query")
    }
    const token = HF_TOKEN === undefined || HF_TOKEN === "" ? undefined : HF_TOKEN
    // The characters allowed in a header. The value itself is never shown.
    if (token !== undefined && !/^[\x21-\x7e]{1,512}$/.test(token)) {
      return yield* bad("HF_TOKEN", "…", "a token of visible ASCII characters")
    }
    return { endpoint: text.replace(/\/+$/, ""), token }
  })

/**
 * AWS' own variables, for a bucket with shared uploads. The keys have no flag, because a command line is visible to other users. No value
 * of them is ever shown.
 */
export const s3Access = (env: NodeJS.ProcessEnv = process.env): Effect.Effect<S3Access, BadSetting> =>
  Effect.gen(function* () {
    const bad = (variable: string, allowed: string, value = "…") =>
      new BadSetting({ variable, value, allowed })
    /** The characters allowed in a header. */
    const secret = (variable: string) => {
      const value = env[variable] ?? ""
      if (/^[\x21-\x7e]{1,4096}$/.test(value)) return Effect.succeed(value)
      const allowed = "EDGEWISE_UPLOADS names a bucket, which needs it: visible ASCII characters"
      return Effect.fail(bad(variable, allowed, value === "" ? "" : "…"))
    }
    const accessKeyId = yield* secret("AWS_ACCESS_KEY_ID")
    const secretAccessKey = yield* secret("AWS_SECRET_ACCESS_KEY")
    const sessionToken = env.AWS_SESSION_TOKEN ? yield* secret("AWS_SESSION_TOKEN") : undefined
    const region = env.AWS_REGION || env.AWS_DEFAULT_REGION || "us-east-1"
    if (!/^[a-z0-9-]{1,32}$/.test(region))
      return yield* bad(
        env.AWS_REGION ? "AWS_REGION" : "AWS_DEFAULT_REGION",
        "allowed is the name of a region, such as eu-central-1",
        region.slice(0, 100),
      )
    const variable = env.AWS_ENDPOINT_URL_S3 ? "AWS_ENDPOINT_URL_S3" : "AWS_ENDPOINT_URL"
    const text = env[variable] || undefined
    const url = text === undefined || parseUrl(text) === undefined ? undefined : new URL(text)
    const isPlainAddress =
      url?.username === "" && url.pathname === "/" && url.search === "" && url.hash === ""
    if (text !== undefined && !isPlainAddress)
      return yield* bad(
        variable,
        "allowed is an http or https address without a path, credentials or a query",
        text.slice(0, 200).replace(/\/\/[^@/]*@/, "//…@"),
      )
    return { accessKeyId, secretAccessKey, sessionToken, region, endpoint: url?.origin }
  })
