// What was found out about a model's files: all of a catalog entry but its id, and the reasons for its values as comments.
import type { ModelEntry, WeightFile } from "#domain/models/ModelEntry.ts"
import type { Comments } from "../edit/EntryText.ts"

export interface FoundModel {
  readonly kind: ModelEntry["kind"]
  readonly adapter: string
  readonly files: Readonly<Record<string, WeightFile>>
  readonly options: Readonly<Record<string, unknown>>
  readonly speech?: Readonly<Record<string, unknown>>
  readonly transcription?: Readonly<Record<string, unknown>>
  /** In one line, e.g. `qwen3, Q8_0, context of 40960 tokens`. */
  readonly summary: string
  readonly comments: Comments
  /** What the operator should know before using it. */
  readonly notes: ReadonlyArray<string>
}

/** What the command line chose among several files. */
export interface Choice {
  /** Path of a GGUF file or graph in the repository. */
  readonly file?: string | undefined
  /** Endings of graphs in order of preference, e.g. `_quantized`; the empty text is full precision. */
  readonly precisions?: ReadonlyArray<string> | undefined
  /** Bytes that models may have on this machine. */
  readonly memoryBytes: number
}

const mebibyte = 1024 * 1024

export const megabytes = (bytes: number): string =>
  bytes >= 10 * 1024 * mebibyte
    ? `${(bytes / mebibyte / 1024).toFixed(1)} GB`
    : `${Math.ceil(bytes / mebibyte)} MB`

/** All bytes of the files that are known. */
export const bytesOf = (files: Readonly<Record<string, WeightFile>>): number =>
  Object.values(files).reduce(
    (sum, { files: members = {}, sizeBytes = 0 }) =>
      sum + sizeBytes + Object.values(members).reduce((inner, one) => inner + (one.sizeBytes ?? 0), 0),
    0,
  )
