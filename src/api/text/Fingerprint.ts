// `system_fingerprint` of replies: the same for the same version of edgewise with the same model, files and options, so that
// a caller who repeats a `seed` sees whether a different reply was to be expected.
import { createHash } from "node:crypto"
import { Effect } from "effect"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { NodeIdentity } from "#http/NodeIdentity.ts"

const known = new WeakMap<ModelEntry, string>()

export const fingerprintOf = (entry: ModelEntry): Effect.Effect<string> =>
  Effect.map(NodeIdentity, ({ version }) => {
    const kept = known.get(entry)
    if (kept !== undefined) return kept
    const { adapter, files, id, options } = entry
    const facts = JSON.stringify([version, id, adapter, files, options])
    const made = `fp_${createHash("sha256").update(facts).digest("hex").slice(0, 16)}`
    known.set(entry, made)
    return made
  })
