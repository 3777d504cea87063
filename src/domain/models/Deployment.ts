// A model as it is deployed: its catalog entry and the files that it is loaded from.
import type { ModelEntry } from "./ModelEntry.ts"

/** What tells two contents of a weight file apart. */
export interface FileVersion {
  readonly sizeBytes: number
  /** Time of the last modification, milliseconds since 1970. */
  readonly modifiedMs: number
  /** Lower-case hex; undefined where neither the catalog nor a pull has one. */
  readonly sha256: string | undefined
}

/** A catalog entry together with where its files lie on this machine. */
export interface Deployment {
  readonly entry: ModelEntry
  /** Role → absolute path. */
  readonly files: Readonly<Record<string, string>>
  /** Further files that those name: parts of a split GGUF, external data of ONNX graphs. Absolute. */
  readonly parts?: ReadonlyArray<string>
  /** Role → version of the file, for a reload to see what changed. */
  readonly versions?: Readonly<Record<string, FileVersion>>
  /** Sum of the files, for the memory ledger. */
  readonly sizeBytes: number
  /** Parameters of its GGUF weights, without an mmproj file. Absent for other formats and for files that are missing. */
  readonly parameters?: number
  /** Sources that have to be pulled before the model can load. */
  readonly missing?: ReadonlyArray<string>
  /** Why its files cannot be loaded, in words for operators. */
  readonly problem?: string
}
