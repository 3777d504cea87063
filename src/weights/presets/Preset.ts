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
   * SHA-256 by path, where public records of the hub's own declarations agree. Then sizes are exact too, and `add` says so if
   * the publisher has replaced a file. Absent: names and sizes were not verified, and sizes are rounded.
   */
  readonly sums?: Readonly<Record<string, string>>
}

export const isVerified = ({ sums }: Preset): boolean => sums !== undefined
