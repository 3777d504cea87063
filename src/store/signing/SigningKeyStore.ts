// The place where the signing keys are kept, and the format of a stored key. Two implementations: the data directory
// (SigningKeyFile) and a database that several nodes share (SigningKeyRow).
import { Effect, Schema } from "effect"
import type { StoreUnavailable } from "../files/StoreErrors.ts"

/** An Ed25519 key as JWK (RFC 8037). `d` is the private part. */
export const StoredKey = Schema.Struct({
  kid: Schema.NonEmptyString,
  x: Schema.NonEmptyString,
  d: Schema.NonEmptyString,
  createdAtMs: Schema.Finite,
  activeAtMs: Schema.Finite,
})
export type StoredKey = typeof StoredKey.Type

export interface SigningKeyStore {
  /** Names the place in errors. */
  readonly place: string
  /** Changes with every write. Undefined if nothing has been written yet. */
  readonly version: Effect.Effect<string | undefined, StoreUnavailable>
  readonly read: Effect.Effect<ReadonlyArray<StoredKey>, StoreUnavailable>
  /**
   * Replaces the stored keys by what `next` returns for them, all or nothing. If it returns undefined, nothing changes. Changes of several
   * processes follow each other.
   */
  readonly change: (
    next: (keys: ReadonlyArray<StoredKey>) => Effect.Effect<ReadonlyArray<StoredKey> | undefined>,
  ) => Effect.Effect<void, StoreUnavailable>
}

const Contents = Schema.fromJsonString(Schema.Struct({ keys: Schema.Array(StoredKey) }))
const decode = Schema.decodeUnknownEffect(Contents)

/** Callers must replace the error's message: it quotes the text, which holds secrets. */
export const parseKeys = (text: string): Effect.Effect<ReadonlyArray<StoredKey>, Schema.SchemaError> =>
  Effect.map(decode(text), ({ keys }) => keys)

export const encodeKeys = (keys: ReadonlyArray<StoredKey>): string =>
  `${JSON.stringify({ keys }, undefined, 1)}\n`
