// The schemas of catalog entries, and pure functions of an entry.
import { Schema } from "effect"
import { integerFrom, numberFrom, withDefault } from "./EntrySchemas.ts"

export const ModelKind = Schema.Literals(["text", "speech", "transcription", "embedding", "detection"])
export type ModelKind = typeof ModelKind.Type

/**
 * A model id in paths and JSON: a name, or an owner and a name as on model hubs (`Qwen/Qwen3-0.6B`), at most 128
 * characters (protocol 6.1).
 */
export const ModelId = Schema.String.check(
  Schema.isPattern(/^(?=.{1,128}$)[A-Za-z0-9][A-Za-z0-9._-]*(?:\/[A-Za-z0-9][A-Za-z0-9._-]*)?$/, {
    expected:
      "1 to 128 letters, digits, dots, hyphens and underscores that begin with a letter or digit, as NAME or OWNER/NAME",
  }),
)

/** Path segments below `/v1/models/` that are endpoints, so they cannot be ids (protocol 6.2). */
export const reservedModelIds: ReadonlyArray<string> = [
  "load",
  "logs",
  "pull",
  "reload",
  "status",
  "unload",
  "unload-all",
]

/** What is known of a file before it is read. */
const Expected = {
  /** Lower-case hex. Absent for folders of small files, which contain their own list of sums. */
  sha256: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/, { expected: "64 lower-case hex digits" })),
  ),
  /** A file of another size is refused. */
  sizeBytes: Schema.optionalKey(Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))),
}

/** One weight file: a path relative to the catalog's folder, or `hf:owner/repo@commit/file`. */
export const WeightFile = Schema.Struct({
  source: Schema.NonEmptyString,
  ...Expected,
  /** Of a folder on a hub: its files by their names. */
  files: Schema.optionalKey(
    Schema.Record(
      Schema.String.check(
        Schema.isPattern(/^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$/, {
          expected: "a file name of letters, digits, dots, hyphens and underscores",
        }),
      ),
      Schema.Struct(Expected),
    ),
  ),
})
export type WeightFile = typeof WeightFile.Type

const MicroDollars = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** Prices in micro-dollars (1e-6 USD). Integers, so that sums are exact. */
const Price = Schema.Struct({
  inputPerMillionTokens: Schema.optionalKey(MicroDollars),
  outputPerMillionTokens: Schema.optionalKey(MicroDollars),
  perMinute: Schema.optionalKey(MicroDollars),
})

/** How the engine of a model is run. */
export const Runtime = Schema.Struct({
  /** `process` survives native crashes and returns its memory; in a `thread` a native crash ends the node. */
  isolation: withDefault(Schema.Literals(["process", "thread"]), "process"),
  /**
   * CPU threads. `auto`: the fastest number on this machine, fewer while other models work (docs/operations.md). A
   * number is used unchanged, whatever other models do.
   */
  threads: withDefault(Schema.Union([Schema.Literal("auto"), integerFrom(1, 256)]), "auto"),
  /** Requests that may wait for a slot. A further one is refused with 503 (protocol 4.5). */
  waitingLine: withDefault(integerFrom(0, 10_000), 64),
  /** `start` loads the model with the node, `demand` at the first request. */
  load: withDefault(Schema.Literals(["start", "demand"]), "demand"),
  /**
   * Milliseconds without an answer and without computing after which an engine counts as hung and is killed. A native call that
   * computes for longer is no hang until it has used eight times as much processor time.
   */
  hangDeadlineMs: withDefault(integerFrom(100, 600_000), 15_000),
  /** Longest load, milliseconds; a longer one fails. 10 minutes: a guess, for weights on a slow disk. */
  loadDeadlineMs: withDefault(integerFrom(100, 86_400_000), 600_000),
  /** Seconds without a request after which it is unloaded. 0: never. Absent: the node's setting. */
  idleUnloadSeconds: Schema.optionalKey(numberFrom(0, 31_536_000)),
  /** Never unloaded, neither when idle nor for another model's memory. */
  pinned: withDefault(Schema.Boolean, false),
})

/** Limits and voices of a speech model. */
const SpeechLimits = Schema.Struct({
  /** Unicode code points of one request's text, after clean-up (protocol 8.3). */
  maxCharacters: integerFrom(1, 100_000),
  /** Preset voices, as `/v1/audio/voices` lists them. */
  voices: Schema.Array(Schema.NonEmptyString),
  /** Other names of these voices: alias → voice. */
  aliases: Schema.optionalKey(Schema.Record(Schema.NonEmptyString, Schema.NonEmptyString)),
  /** True if the voice may be a reference clip. */
  cloning: withDefault(Schema.Boolean, false),
  /** ISO-639-1. */
  languages: withDefault(Schema.Array(Schema.NonEmptyString), ["en"]),
})

/** Defaults of a transcription model. */
const TranscriptionDefaults = Schema.Struct({
  /** Language of requests that name none. Absent if the model detects it. */
  defaultLanguage: Schema.optionalKey(Schema.String),
  /**
   * Id of a smaller model of the catalog that writes the captions of live sessions; the final result is this model's.
   */
  draft: Schema.optionalKey(ModelId),
})

export const ModelEntry = Schema.Struct({
  id: ModelId,
  kind: ModelKind,
  /** Other names of the model in requests. Lists, receipts and metrics show its id. */
  aliases: Schema.optionalKey(Schema.Array(ModelId)),
  adapter: Schema.NonEmptyString,
  ownedBy: Schema.NonEmptyString,
  /** Unix time, seconds. */
  created: Schema.Int,
  files: Schema.Record(Schema.String, WeightFile),
  /** The adapter's options, which it decodes itself. */
  options: withDefault(Schema.Record(Schema.String, Schema.Unknown), {}),
  runtime: withDefault(Runtime, {}),
  price: Price,
  /** Speech models only. */
  speech: Schema.optionalKey(SpeechLimits),
  transcription: Schema.optionalKey(TranscriptionDefaults),
  /** Region codes that deploy it; `*` means every region. The region `local` deploys everything. */
  regions: withDefault(Schema.Array(Schema.String), ["*"]),
  /** True for the built-in demonstration weights; the start log and `/docs` say so. */
  demonstration: withDefault(Schema.Boolean, false),
})
export type ModelEntry = typeof ModelEntry.Type

export const Catalog = Schema.Struct({ models: Schema.Array(ModelEntry) })
export type Catalog = typeof Catalog.Type

/** True if a node of the region deploys the entry. */
export const isDeployedIn = (entry: Pick<ModelEntry, "regions">, region: string): boolean =>
  region === "local" || entry.regions.includes("*") || entry.regions.includes(region)

/** Whether a model takes pictures: what its engine says once it has loaded, and before that the entry. */
export const seesPictures = ({ files, kind, options }: ModelEntry, facts: object | undefined): boolean => {
  if (facts !== undefined) return "pictures" in facts && facts.pictures !== undefined
  return kind === "text" && (files.mmproj !== undefined || options.pictures !== undefined)
}
