// What a deployed model is: the catalog's entries as schemas, and pure questions about them.
// Read by the catalog loader (store side), the actors and the api; knows no file system and no engine.
import { Effect, Schema } from "effect"

export const ModelKind = Schema.Literals(["text", "speech", "transcription"])
export type ModelKind = typeof ModelKind.Type

/**
 * A model id as it stands in paths and JSON: a name, or an owner and a name as model hubs write them (`Qwen/Qwen3-0.6B`),
 * 128 characters at most.
 */
export const ModelId = Schema.String.check(
  Schema.isPattern(/^(?=.{1,128}$)[A-Za-z0-9][A-Za-z0-9._-]*(?:\/[A-Za-z0-9][A-Za-z0-9._-]*)?$/, {
    expected:
      "1 to 128 letters, digits, dots, hyphens and underscores that begin with a letter or digit, as NAME or OWNER/NAME",
  }),
)

/** Last parts of paths below `/v1/models/`, which `GET /v1/models/{id}` could not answer for a model. */
export const reservedModelIds: ReadonlyArray<string> = [
  "load",
  "logs",
  "pull",
  "reload",
  "status",
  "unload",
  "unload-all",
]

/** One weight file: a path relative to the catalog's folder, or `hf:owner/repo@commit/file`. */
export const WeightFile = Schema.Struct({
  source: Schema.NonEmptyString,
  /** Lower-case hex; absent for folders of small files that carry their own list. */
  sha256: Schema.optionalKey(
    Schema.String.check(Schema.isPattern(/^[0-9a-f]{64}$/, { expected: "64 lower-case hex digits" })),
  ),
})

const MicroDollars = Schema.Int.check(Schema.isGreaterThanOrEqualTo(0))

/** Prices in micro-dollars (1e-6 USD), as integers, so that no sum ever rounds. */
export const Price = Schema.Struct({
  inputPerMillionTokens: Schema.optionalKey(MicroDollars),
  outputPerMillionTokens: Schema.optionalKey(MicroDollars),
  perMinute: Schema.optionalKey(MicroDollars),
})

/** How the engine of a model is run. */
export const Runtime = Schema.Struct({
  /** `process` survives native crashes and gives memory back; `thread` shares the gateway's fate. */
  isolation: Schema.Literals(["process", "thread"]).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("process" as const)),
  ),
  /**
   * CPU threads. `auto`: as many as pay on this machine, fewer while other models work (docs/operations.md). A number is
   * used as it stands, whatever else works.
   */
  threads: Schema.Union([
    Schema.Literal("auto"),
    Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 256 })),
  ]).pipe(Schema.withDecodingDefaultKey(Effect.succeed("auto" as const))),
  /** Requests that may wait for a slot; one more is answered 503. */
  waitingLine: Schema.Int.check(Schema.isBetween({ minimum: 0, maximum: 10_000 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(64)),
  ),
  /** `start` loads with the node, `demand` at the first request. */
  load: Schema.Literals(["start", "demand"]).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed("demand" as const)),
  ),
  /** Silence after which an engine counts as hung and is killed, milliseconds; longer than its longest native call. */
  hangDeadlineMs: Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 600_000 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(15_000)),
  ),
  /** A load that takes longer has failed, milliseconds. 10 minutes: a guess, for weights on a slow disk. */
  loadDeadlineMs: Schema.Int.check(Schema.isBetween({ minimum: 100, maximum: 86_400_000 })).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed(600_000)),
  ),
  /** Seconds without a request after which it is unloaded; 0 never; absent: what the node's settings say. */
  idleUnloadSeconds: Schema.optionalKey(
    Schema.Finite.check(Schema.isBetween({ minimum: 0, maximum: 31_536_000 })),
  ),
  /** Never unloaded for being idle, nor to make room for another. */
  pinned: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
})

/** What a speech model takes. */
export const SpeechLimits = Schema.Struct({
  /** Unicode code points of one request's text, after clean-up. */
  maxCharacters: Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 100_000 })),
  /** Preset voices, as `/v1/audio/voices` lists them. */
  voices: Schema.Array(Schema.NonEmptyString),
  /** Other names of these voices: alias → voice. */
  aliases: Schema.optionalKey(Schema.Record(Schema.NonEmptyString, Schema.NonEmptyString)),
  /** Whether the voice may be a reference clip. */
  cloning: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
  /** ISO-639-1. */
  languages: Schema.Array(Schema.NonEmptyString).pipe(Schema.withDecodingDefaultKey(Effect.succeed(["en"]))),
})

/** What a transcription model does without being told. */
export const TranscriptionDefaults = Schema.Struct({
  /** Language when a request names none; absent where the model detects it. */
  defaultLanguage: Schema.optionalKey(Schema.String),
  /** Id of a smaller model of the catalog that captions live sessions; the final result is this model's own. */
  draft: Schema.optionalKey(ModelId),
})

export const ModelEntry = Schema.Struct({
  id: ModelId,
  kind: ModelKind,
  /** Other names under which the model answers. Lists, receipts and metrics show its id. */
  aliases: Schema.optionalKey(Schema.Array(ModelId)),
  adapter: Schema.NonEmptyString,
  ownedBy: Schema.NonEmptyString,
  /** Unix time, seconds. */
  created: Schema.Int,
  files: Schema.Record(Schema.String, WeightFile),
  /** The adapter's own options; it decodes them itself. */
  options: Schema.Record(Schema.String, Schema.Unknown).pipe(
    Schema.withDecodingDefaultKey(Effect.succeed({})),
  ),
  runtime: Runtime.pipe(Schema.withDecodingDefaultKey(Effect.succeed({}))),
  price: Price,
  /** Of speech models only. */
  speech: Schema.optionalKey(SpeechLimits),
  transcription: Schema.optionalKey(TranscriptionDefaults),
  /** Region codes that deploy it; `*` is every region. The region `local` deploys everything. */
  regions: Schema.Array(Schema.String).pipe(Schema.withDecodingDefaultKey(Effect.succeed(["*"]))),
  /** True for the built-in weights, which the start log and `/docs` call by their name: a demonstration. */
  demonstration: Schema.Boolean.pipe(Schema.withDecodingDefaultKey(Effect.succeed(false))),
})
export type ModelEntry = typeof ModelEntry.Type

export const Catalog = Schema.Struct({ models: Schema.Array(ModelEntry) })
export type Catalog = typeof Catalog.Type

/** Whether a node of the region deploys the entry. */
export const isDeployedIn = (entry: ModelEntry, region: string): boolean =>
  region === "local" || entry.regions.includes("*") || entry.regions.includes(region)
