// `system_fingerprint` of replies: the same for the same version of edgewise with the same model, files and options, so that
// a caller who repeats a `seed` sees whether a different reply was to be expected.
import { createHash } from "node:crypto"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"

const known = new WeakMap<ModelEntry, string>()

/** `version`: of edgewise; the same for all calls in a process. */
export const fingerprintOf = (entry: ModelEntry, version: string): string => {
  const kept = known.get(entry)
  if (kept !== undefined) return kept
  const { adapter, files, id, options } = entry
  const facts = JSON.stringify([version, id, adapter, files, options])
  const made = `fp_${createHash("sha256").update(facts).digest("hex").slice(0, 16)}`
  known.set(entry, made)
  return made
}
