// A transcription job as the database keeps it and as the node reads it.
import { Schema } from "effect"
import type { Transcript } from "#domain/audio/Transcript.ts"
import type { JobStatus } from "#domain/wire/JobStatus.ts"

/** The request's options; stored as JSON. */
export const JobOptions = Schema.Struct({
  language: Schema.NullOr(Schema.String),
  prompt: Schema.String,
  temperature: Schema.Finite,
  punctuation: Schema.NullOr(Schema.Boolean),
  format: Schema.Literals(["json", "text", "srt", "vtt", "verbose_json"]),
  granularities: Schema.Array(Schema.String),
  /**
   * Trace context of the submitting request, if traces are exported: the job continues its trace, also after a crash.
   */
  traceparent: Schema.optionalKey(Schema.String),
})
export type JobOptions = typeof JobOptions.Type

export interface NewJob {
  readonly orgId: string
  readonly keyId: string
  readonly model: string
  readonly options: JobOptions
  readonly uploadPath: string
}

export interface Job extends NewJob {
  readonly id: string
  /** True if this node holds the uploaded file. Other nodes can only read or cancel the job. */
  readonly isHere: boolean
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
}

const decodeOptions = Schema.decodeUnknownSync(Schema.fromJsonString(JobOptions))

/** @param node id of this node */
export const jobOf = (row: JobRow, node: string): Job => ({
  id: row.id,
  isHere: row.node_id === node,
  acceptedAtMs: Number(row.accepted_at_ms),
  orgId: row.org_id,
  keyId: row.key_id,
  model: row.model,
  status: row.status,
  options: decodeOptions(row.options),
  uploadPath: row.upload_path,
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
}
