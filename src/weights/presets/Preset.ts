// A preset: a model of a hub under a short name, with what is known of it before anything is downloaded. Data only.
import type { ModelKind } from "#domain/models/ModelEntry.ts"

export interface Preset {
  readonly name: string
  /** In a few words. */
  readonly does: string
  readonly family: string
  readonly kind: ModelKind
  /** `owner/name` on the hub. */
  readonly repository: string
  /** Path of the GGUF file, or its quantisation. */
  readonly file?: string
  /** Endings of an export's graphs in order of preference. */
  readonly precisions?: ReadonlyArray<string>
  /** All files together. */
  readonly sizeBytes: number
  readonly licence: string
  /** True if `mmproj` belongs to it: its memory includes the rows of pictures that are kept. */
  readonly pictures?: boolean
  /**
   * SHA-256 of weights by path, where several public records of the hub's own declarations agree; `add` says so if the
   * publisher has replaced a file. Absent: neither names nor size were verified. A size in whole millions is rounded.
   */
  readonly sums?: Readonly<Record<string, string>>
}

export const isVerified = ({ sums }: Preset): boolean => sums !== undefined
