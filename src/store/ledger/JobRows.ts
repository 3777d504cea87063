// A transcription job as the database keeps it and as the node reads it.
import { Schema } from "effect"
import type { Transcript, TranscriptProgress } from "#domain/audio/Transcript.ts"
import type { JobStatus } from "#domain/wire/JobStatus.ts"

/** The request's options; stored as JSON. */
export const JobOptions = Schema.Struct({
  language: Schema.NullOr(Schema.String),
  prompt: Schema.String,
  temperature: Schema.Finite,
  punctuation: Schema.NullOr(Schema.Boolean),
  format: Schema.Literals(["json", "text", "srt", "vtt", "verbose_json"]),
  granularities: Schema.Array(Schema.String),
  /** Phrases that may occur. Absent: none. */
  keywords: Schema.optionalKey(Schema.Array(Schema.String)),
  /**
   * Trace context of the submitting request, if traces are exported: the job continues its trace, also after a crash.
   */
  traceparent: Schema.optionalKey(Schema.String),
})
export type JobOptions = typeof JobOptions.Type

/** What an upload in the place that all nodes reach must be, to notice that it was changed. */
export interface UploadFacts {
  readonly sizeBytes: number
  /** Lower-case hex. */
  readonly sha256: string
}

/** Where the work at a job stopped, for the next worker, which may be another node. */
export interface SavedProgress {
  readonly progress: TranscriptProgress | undefined
  /** Identity of the weights whose tokens `progress` holds. */
  readonly weights: string
  /** Failures of the engine since the last progress. */
  readonly engineFailures: number
}

export interface NewJob {
  readonly orgId: string
  readonly keyId: string
  readonly model: string
  readonly options: JobOptions
  /** A path on this node's disk; of a shared upload its name there. */
  readonly uploadPath: string
  /** Present if the upload lies where all nodes reach it, so that any node may do the job. */
  readonly shared?: UploadFacts
}

export interface Job extends NewJob {
  readonly id: string
  /**
   * True if no other node has to do with the job now: this one holds the uploaded file or works at the job, or the upload is shared and
   * none works at it. Other nodes can only read or cancel the job.
   */
  readonly isHere: boolean
  /** How often it was taken. A worker names its own attempt in every change: if another has taken the job since, nothing changes. */
  readonly attempt: number
  /** Of a job that was just taken. */
  readonly saved: SavedProgress | undefined
  /** Samples at 16 kHz that the saved progress holds. */
  readonly heardSamples: number
  /** By the store's clock, milliseconds since 1970. */
  readonly acceptedAtMs: number
  readonly status: JobStatus
  /** Known once the file has been decoded to its end. */
  readonly decodedMs: number | undefined
  /** Why the job failed or waits, as a sentence for its owner. */
  readonly note: string | undefined
  readonly transcript: Transcript | undefined
}

/** A row of `transcription_jobs`. */
export interface JobRow {
  readonly id: string
  readonly org_id: string
  readonly key_id: string
  readonly model: string
  readonly status: JobStatus
  readonly options: string
  readonly upload_path: string
  readonly node_id: string
  readonly decoded_ms: number | null
  readonly note: string | null
  readonly transcript: string | null
  readonly accepted_at_ms: number
  readonly shared: number
  readonly upload_bytes: number
  readonly upload_sha256: string
  readonly attempt: number
  readonly heard_samples: number
  /** Read only when a job is taken: it may be a megabyte. */
  readonly progress?: string | null
}

/** All columns but `progress`. */
export const jobColumns =
  "id, org_id, key_id, model, status, options, upload_path, node_id, decoded_ms, note, transcript, accepted_at_ms, shared, upload_bytes, upload_sha256, attempt, heard_samples"

const decodeOptions = Schema.decodeUnknownSync(Schema.fromJsonString(JobOptions))

/** @param node id of this node */
export const jobOf = (row: JobRow, node: string): Job => ({
  id: row.id,
  isHere: row.node_id === node || (row.shared === 1 && row.node_id === ""),
  acceptedAtMs: Number(row.accepted_at_ms),
  orgId: row.org_id,
  keyId: row.key_id,
  model: row.model,
  status: row.status,
  options: decodeOptions(row.options),
  uploadPath: row.upload_path,
  ...(row.shared === 1 ? { shared: { sizeBytes: Number(row.upload_bytes), sha256: row.upload_sha256 } } : {}),
  attempt: Number(row.attempt),
  saved: row.progress == null ? undefined : (JSON.parse(row.progress) as SavedProgress),
  heardSamples: Number(row.heard_samples),
  decodedMs: row.decoded_ms ?? undefined,
  note: row.note ?? undefined,
  transcript: row.transcript === null ? undefined : (JSON.parse(row.transcript) as Transcript),
})

/** Other fields that a change writes. */
export interface JobChange {
  readonly note?: string
  readonly transcript?: Transcript
  readonly decodedMs?: number
  /** Event `return` only: the job is not taken again for this many milliseconds. */
  readonly waitMs?: number
  /** Event `return` only: where the next worker goes on. Absent: as saved before. */
  readonly saved?: SavedProgress
}
