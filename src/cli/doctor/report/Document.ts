// The schema of `edgewise doctor --json` (docs/doctor.md). Field names are stable; new ones may be added. `null` means
// that something was not measured or the system does not report it.
import { Schema } from "effect"
import { spreadOf } from "#harness/figures/Statistics.ts"
import { rounded } from "#harness/report/Figure.ts"

const number = Schema.NullOr(Schema.Finite)
const text = Schema.NullOr(Schema.String)

const Verdict = Schema.Literals(["ok", "warning", "failure"])

/** One item of the environment: a library, the memory, the disk, a timer. */
export const Surrounding = Schema.Struct({
  name: Schema.String,
  verdict: Verdict,
  detail: Schema.String,
  /** What to do if the verdict is not `ok`. */
  advice: text,
})
export type Surrounding = typeof Surrounding.Type

export const Machine = Schema.Struct({
  cpu: Schema.String,
  /** What the affinity mask of this process allows: hardware threads, and cores among them. */
  cores: Schema.Finite,
  hardware_threads: Schema.Finite,
  /** Hardware threads of the machine. */
  processors: Schema.Finite,
  /** Processor time per second that the container allows. */
  quota_cores: number,
  memory_bytes: Schema.Finite,
  memory_available_bytes: Schema.Finite,
  last_level_cache_bytes: number,
  /** Memory read speed, 10^9 bytes a second: by one thread, and by one on each core. */
  read_gb_per_second: Schema.Struct({ one_thread: number, all_cores: number }),
  /** Before anything was measured: load of the last minute, and share of all processors in use. */
  load_1m: Schema.Finite,
  busy_percent: number,
  system: Schema.String,
  node: Schema.String,
})
export type Machine = typeof Machine.Type

/** Median, best and worst of several times. `best` was added later; older documents lack it. */
export const Times = Schema.Struct({
  median: Schema.Finite,
  best: Schema.optionalKey(Schema.Finite),
  worst: Schema.Finite,
  count: Schema.Finite,
})
export type Times = typeof Times.Type

/**
 * Processor time per second during a measurement: of the model's engine, of this process (the node and the load
 * client), and of everything else on the machine.
 */
export const Cores = Schema.Struct({ engine: number, node: Schema.Finite, other: number })
export type Cores = typeof Cores.Type

/** Text at a number of parallel streams. */
export const TextLevel = Schema.Struct({
  streams: Schema.Finite,
  /** Mean tokens of the prompts whose first token was measured. */
  prompt_tokens: number,
  prompt_tokens_per_second: number,
  /** All streams together. */
  reply_tokens_per_second: number,
  /** With prompts of `first_token_prompt_tokens` tokens, all streams sent at once. */
  first_token_ms: Schema.NullOr(Times),
  first_token_prompt_tokens: number,
  /** While replies were counted. */
  cores: Schema.NullOr(Cores),
})
export type TextLevel = typeof TextLevel.Type

export const Speech = Schema.Struct({
  /** Seconds of work per second of speech; below 1 is faster than real time. */
  real_time_factor: number,
  first_audio_ms: Schema.NullOr(Times),
  play_outs: Schema.NullOr(
    Schema.Struct({
      asked: Schema.Finite,
      admitted: Schema.Finite,
      /** The real-time factor that the node had measured by then and uses for admission. */
      admission_factor: number,
      /** False: none was refused, so the node may admit more. */
      refused: Schema.Boolean,
      first_audio_ms: Schema.NullOr(Times),
      ran_dry: Schema.Finite,
    }),
  ),
  /** While the real-time factor was measured. */
  cores: Schema.NullOr(Cores),
})
export type Speech = typeof Speech.Type

export const Transcription = Schema.Struct({
  audio_seconds: number,
  real_time_factor: number,
  /** A clip of a few seconds, from sending it to its text. */
  short_clip_ms: number,
  /** While the real-time factor was measured. */
  cores: Schema.NullOr(Cores),
  live: Schema.NullOr(
    Schema.Struct({
      /** Sessions that the node admits, given the window cost of one session. */
      admitted: number,
      refused: Schema.NullOr(Schema.Boolean),
      /** Work of one window, and seconds of audio between two captions. */
      window_ms: number,
      window_seconds: Schema.Finite,
      one_speaker: Schema.NullOr(
        Schema.Struct({ caption_lag_ms: Schema.NullOr(Times), final_ms: Schema.NullOr(Times) }),
      ),
      /** As many sessions, started within a second and sending audio all the time. */
      many_speakers: Schema.NullOr(
        Schema.Struct({
          asked: Schema.Finite,
          admitted: Schema.Finite,
          caption_lag_ms: Schema.NullOr(Times),
          final_ms: Schema.NullOr(Times),
          failed: Schema.Finite,
        }),
      ),
    }),
  ),
})
export type Transcription = typeof Transcription.Type

/** A native library that the engine has loaded. */
export const Library = Schema.Struct({
  name: Schema.String,
  version: text,
  /** The build for a kind of processor, e.g. `zen4`; what computes, e.g. `cpu` or `cuda`. */
  variant: text,
  provider: Schema.String,
})
export type Library = typeof Library.Type

const Status = Schema.Literals(["measured", "partial", "failed", "skipped", "same"])

export const ModelReport = Schema.Struct({
  id: Schema.String,
  kind: Schema.Literals(["text", "speech", "transcription", "embedding", "detection"]),
  adapter: Schema.String,
  demonstration: Schema.Boolean,
  status: Status,
  /** The model with the same weights and settings whose figures apply to this one. */
  same_as: text,
  /** Why it failed or was skipped. */
  reason: text,
  /** What was not measured, or not completely, and why. */
  incomplete: Schema.Array(Schema.String),
  summary: text,
  load_ms: number,
  weights_bytes: Schema.Finite,
  /** Resident memory of its process after its measurements, and the part of it that is not backed by a file. */
  memory_bytes: number,
  private_bytes: number,
  /** Most CPU threads that it uses, the origin of that number, and what was measured for it, in words. */
  threads: number,
  threads_from: Schema.NullOr(Schema.Literals(["catalog", "measured", "kept", "size"])),
  threads_measured: text,
  slots: number,
  context_tokens: number,
  libraries: Schema.Array(Library),
  text: Schema.NullOr(Schema.Struct({ levels: Schema.Array(TextLevel) })),
  speech: Schema.NullOr(Speech),
  transcription: Schema.NullOr(Transcription),
  /** What limits it, in words; only what the figures show. */
  limits: Schema.Array(Schema.String),
})
export type ModelReport = typeof ModelReport.Type

export const Memory = Schema.Struct({
  /** Memory that the node and its models may use. */
  budget_bytes: Schema.Finite,
  node_bytes: Schema.Finite,
  /** Claimed by the models that a node loads when it starts. */
  models_bytes: Schema.Finite,
  /** What other models may still claim. */
  left_bytes: Schema.Finite,
})
export type Memory = typeof Memory.Type

export const schemaName = "edgewise-doctor/1"

export const Document = Schema.Struct({
  schema: Schema.Literal(schemaName),
  version: Schema.String,
  started_at: Schema.String,
  took_seconds: Schema.Finite,
  /** The given time limit. */
  seconds: Schema.Finite,
  /** False if a model could not be loaded or measured: exit status 1. */
  ok: Schema.Boolean,
  machine: Machine,
  surroundings: Schema.Array(Surrounding),
  memory: Schema.NullOr(Memory),
  models: Schema.Array(ModelReport),
})
export type Document = typeof Document.Type

/** Whether it says that it is one; the schema decides. */
export const isDocument = (value: unknown): boolean =>
  typeof value === "object" && value !== null && "schema" in value && value.schema === schemaName

/** Median, best and worst. null for an empty list. */
export const timesOf = (values: ReadonlyArray<number>): Times | null => {
  if (values.length === 0) return null
  const { high, low, median, readings } = spreadOf(values)
  return { median: rounded(median), best: rounded(low), worst: rounded(high), count: readings }
}
