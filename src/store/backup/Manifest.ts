// The first part of a backup: what made it, of which node, and the size and SHA-256 of every other part.
import { Schema } from "effect"

export const manifestName = "manifest.json"
export const storeName = "store.sqlite"

/** The form of a backup. A later one that this version cannot read gets another number. */
export const backupFormat = 1

/**
 * Files of the data directory that a backup holds, where they exist: the store, the keys that sign session tokens, the development key,
 * models that were added to the catalog, measured thread counts, the certificate of `--tls self-signed`. Weights, uploads, compiled
 * code and locks are left out; so is the node's id, because a restored node is another one.
 */
export const keptFiles = [
  storeName,
  "signing-keys.json",
  "dev-key",
  "models.jsonc",
  "threads.json",
  "tls/self-signed-cert.pem",
  "tls/self-signed-key.pem",
] as const

/** The operator's own catalog, whatever its file is called. */
export const catalogName = "catalog.json"

export const partNames: ReadonlyArray<string> = [...keptFiles, catalogName]

export const Manifest = Schema.Struct({
  format: Schema.Int,
  /** Version of edgewise that made the backup. */
  edgewise: Schema.String,
  /** Number of the newest migration of the store. */
  schema: Schema.Int,
  /** ISO 8601, UTC. */
  made_at: Schema.String,
  /** Id of the node that was backed up. */
  node: Schema.String,
  parts: Schema.Array(Schema.Struct({ name: Schema.String, size_bytes: Schema.Int, sha256: Schema.String })),
})
export type Manifest = typeof Manifest.Type
