// The files of one model as its actor needs them: whether they can be loaded, and where they are now. Called by Model; the
// looking and checking itself is the store's.
import { Effect } from "effect"
import type { Device } from "./Device.ts"
import { tooLarge } from "./ModelRoom.ts"
import type { ModelOptions } from "./ModelView.ts"

export type FilesNow =
  | {
      /** Role → absolute path. */
      readonly paths: Readonly<Record<string, string>>
      readonly weightBytes: number
    }
  | { readonly problem: string }

const notPulled = ({ entry, missing = [] }: Pick<ModelOptions, "entry" | "missing">): string | undefined =>
  missing.length === 0 ? undefined : `weights are not pulled: edgewise models pull ${entry.id}`

/** Why the model cannot be loaded, as far as that is known without loading it. */
export const problemAtStart = (
  device: Device["Service"],
  options: ModelOptions,
): Effect.Effect<string | undefined> =>
  Effect.suspend(() => {
    const known = options.problem ?? notPulled(options)
    return known === undefined ? tooLarge(device, options) : Effect.succeed(known)
  })

/** The files as they are now: what was wrong with them at the start may have been mended since. */
export const filesNow = ({
  entry,
  missing,
  problem,
  recheck,
  spec,
  weightBytes,
}: ModelOptions): Effect.Effect<FilesNow> => {
  if (recheck === undefined) {
    const known = problem ?? notPulled({ entry, ...(missing === undefined ? {} : { missing }) })
    return Effect.succeed(known === undefined ? { paths: spec.files, weightBytes } : { problem: known })
  }
  return Effect.map(recheck(), (found) => {
    const now = found.problem ?? notPulled({ ...found, entry })
    return now === undefined ? { paths: found.files, weightBytes: found.sizeBytes } : { problem: now }
  })
}
