// What SigningKeys needs of the place where the signing keys are kept, and how a key is written there. Two places are:
// the data directory (SigningKeyFile), and a database that several nodes share (SigningKeyRow).
import { Effect, Schema } from "effect"
import type { StoreUnavailable } from "../files/StoreErrors.ts"

/** An Ed25519 key as JWK (RFC 8037). `d` is the secret half. */
export const StoredKey = Schema.Struct({
  kid: Schema.NonEmptyString,
  x: Schema.NonEmptyString,
  d: Schema.NonEmptyString,
  createdAtMs: Schema.Finite,
  activeAtMs: Schema.Finite,
})
export type StoredKey = typeof StoredKey.Type

export interface ChangedKeys {
  readonly keys: ReadonlyArray<StoredKey>
  /** `create`: where another process has made the first key before, that one stays and this one is dropped. */
  readonly how: "create" | "replace"
}

export interface SigningKeyStore {
  /** For errors. */
  readonly place: string
  /** Changes with every write; undefined where nothing has been written yet. */
  readonly version: Effect.Effect<string | undefined, StoreUnavailable>
  readonly read: Effect.Effect<ReadonlyArray<StoredKey>, StoreUnavailable>
  /** Writes what `next` makes of the keys that are there, all or nothing; undefined changes nothing. */
  readonly change: (
    next: (keys: ReadonlyArray<StoredKey>) => Effect.Effect<ChangedKeys | undefined>,
  ) => Effect.Effect<void, StoreUnavailable>
}

const Contents = Schema.fromJsonString(Schema.Struct({ keys: Schema.Array(StoredKey) }))
const decode = Schema.decodeUnknownEffect(Contents)

/** The error's own words would quote the text, which holds secrets: say others. */
export const parseKeys = (text: string): Effect.Effect<ReadonlyArray<StoredKey>, Schema.SchemaError> =>
  Effect.map(decode(text), ({ keys }) => keys)

export const encodeKeys = (keys: ReadonlyArray<StoredKey>): string =>
  `${JSON.stringify({ keys }, undefined, 1)}\n`
