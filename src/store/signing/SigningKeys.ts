// The keys that sign session tokens: made, rotated by age or by command, and deleted, in a place that several processes
// may share (SigningKeyStore). SigningSchedule decides when a key is used.
import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import type { SqlClient } from "effect/sql"
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK } from "jose"
import { nextKeyActiveAtMs, publishedKeys, signingKey } from "#domain/access/SigningSchedule.ts"
import { StoreUnavailable } from "../files/StoreErrors.ts"
import { signingKeysIn } from "./SigningKeyFile.ts"
import { sharedSigningKeys } from "./SigningKeyRow.ts"
import type { SigningKeyStore, StoredKey } from "./SigningKeyStore.ts"

/** The only algorithm: Ed25519 signatures, under the name of RFC 8037. */
export const signingAlgorithm = "EdDSA"

/** The public part of a key, as the JWKS shows it. */
interface PublicJwk {
  readonly kty: "OKP"
  readonly crv: "Ed25519"
  readonly x: string
  readonly kid: string
  readonly alg: typeof signingAlgorithm
  readonly use: "sig"
}

export interface Signer {
  readonly kid: string
  readonly privateKey: CryptoKey
}

/** Interval of checks for changes by another process. Protocol 14.2 allows 5 s, which leaves time for a slow check. */
const checkEveryMs = 2_000

interface Loaded extends StoredKey {
  readonly publicJwk: PublicJwk
  readonly publicKey: CryptoKey
  readonly privateKey: CryptoKey
}

const load = (key: StoredKey): Effect.Effect<Loaded, StoreUnavailable> =>
  Effect.tryPromise({
    try: async () => {
      const publicJwk: PublicJwk = {
        kty: "OKP",
        crv: "Ed25519",
        x: key.x,
        kid: key.kid,
        alg: signingAlgorithm,
        use: "sig",
      }
      const publicKey = await importJWK({ ...publicJwk }, signingAlgorithm)
      const privateKey = await importJWK({ ...publicJwk, d: key.d }, signingAlgorithm)
      return { ...key, publicJwk, publicKey, privateKey }
    },
    catch: () => new StoreUnavailable({ place: key.kid, problem: "is not an Ed25519 key" }),
  })

const freshKey = (createdAtMs: number, activeAtMs: number): Effect.Effect<StoredKey> =>
  Effect.promise(async () => {
    const { privateKey } = await generateKeyPair(signingAlgorithm, { crv: "Ed25519", extractable: true })
    const { d = "", x = "" } = await exportJWK(privateKey)
    const kid = await calculateJwkThumbprint({ kty: "OKP", crv: "Ed25519", x })
    return { kid, x, d, createdAtMs, activeAtMs }
  })

/** Adds a key that becomes active at the time that `activeAtMsOf` returns. */
const addKey = Effect.fnUntraced(function* (store: SigningKeyStore, activeAtMsOf: ActiveAtMsOf) {
  let added: StoredKey | undefined
  yield* store.change(
    Effect.fnUntraced(function* (keys) {
      const nowMs = yield* Clock.currentTimeMillis
      const activeAtMs = activeAtMsOf(keys, nowMs)
      if (activeAtMs === undefined) return undefined
      const kept = publishedKeys(keys, nowMs)
      added = yield* freshKey(nowMs, activeAtMs)
      return [...kept, added]
    }),
  )
  return added
})

/** Returns when a key added to these should become active. Undefined if none is to be added. */
type ActiveAtMsOf = (keys: ReadonlyArray<StoredKey>, nowMs: number) => number | undefined

/** `endAll` deletes every other key. */
const rotate = Effect.fn("SigningKeys.rotate")(function* (
  store: SigningKeyStore,
  how: { readonly endAll: boolean },
) {
  const nowMs = yield* Clock.currentTimeMillis
  if (how.endAll) {
    const key = yield* freshKey(nowMs, nowMs)
    yield* store.change(() => Effect.succeed([key]))
    return { kid: key.kid, activeAtMs: key.activeAtMs }
  }
  const key = yield* addKey(store, (keys) => nextKeyActiveAtMs(keys, nowMs, 0) ?? nowMs)
  if (key === undefined) return yield* Effect.die(new Error("the requested signing key was not added"))
  return { kid: key.kid, activeAtMs: key.activeAtMs }
})

/**
 * Makes the next key now, whatever the age of the last. With `endAll` every other key is deleted, which ends every
 * token issued so far.
 */
export const rotateSigningKeys = (dataDir: string, how: { readonly endAll: boolean }) =>
  rotate(signingKeysIn(dataDir), how)

/** The same where several nodes share the store. */
export const rotateSharedSigningKeys = (how: { readonly endAll: boolean }) =>
  Effect.flatMap(sharedSigningKeys, (store) => rotate(store, how))

interface SigningKeysOptions {
  /** True if this process makes keys; false if it only verifies. */
  readonly makesKeys: boolean
  readonly rotateEveryMs: number
}

export class SigningKeys extends Context.Service<
  SigningKeys,
  {
    /** The key that signs now. Fails in a process that makes no keys. */
    readonly signer: Effect.Effect<Signer, StoreUnavailable>
    readonly published: Effect.Effect<ReadonlyArray<PublicJwk>, StoreUnavailable>
    /** The public key of this id. Undefined if no such key is published. */
    readonly find: (kid: string) => Effect.Effect<CryptoKey | undefined, StoreUnavailable>
    /** The same without reading the store: whether the key was published at the last check. */
    readonly has: (kid: string) => boolean
  }
>()("edgewise/store/SigningKeys") {
  /** Keys in the data directory, which must exist. */
  static readonly layer = ({
    dataDir,
    ...options
  }: SigningKeysOptions & { readonly dataDir: string }): Layer.Layer<SigningKeys, StoreUnavailable> =>
    Layer.effect(
      SigningKeys,
      Effect.suspend(() => make(signingKeysIn(dataDir), options)),
    )

  /** Keys in the database that several nodes share. */
  static readonly sharedLayer = (
    options: SigningKeysOptions,
  ): Layer.Layer<SigningKeys, StoreUnavailable, SqlClient.SqlClient> =>
    Layer.effect(
      SigningKeys,
      Effect.flatMap(sharedSigningKeys, (store) => make(store, options)),
    )
}

const make = Effect.fnUntraced(function* (
  store: SigningKeyStore,
  { makesKeys, rotateEveryMs }: SigningKeysOptions,
) {
  const oneAtATime = yield* Semaphore.make(1)
  let version: string | undefined
  let loaded: ReadonlyArray<Loaded> = []
  let checkedAtMs = Number.NEGATIVE_INFINITY

  const reload = Effect.gen(function* () {
    const now = yield* store.version
    if (now === version && now !== undefined) return
    loaded = yield* Effect.forEach(yield* store.read, load)
    version = now
  })

  const check = Effect.gen(function* () {
    const nowMs = yield* Clock.currentTimeMillis
    yield* reload
    const dueMs: ActiveAtMsOf = (keys, atMs) => nextKeyActiveAtMs(keys, atMs, rotateEveryMs)
    if (makesKeys && dueMs(loaded, nowMs) !== undefined) {
      const key = yield* addKey(store, dueMs)
      if (key !== undefined) {
        yield* Effect.logInfo("made a signing key").pipe(
          Effect.annotateLogs({ kid: key.kid, activeInMs: key.activeAtMs - nowMs }),
        )
      }
      yield* reload
    }
    checkedAtMs = nowMs
  }).pipe(oneAtATime.withPermits(1))

  /** At most one read per interval, shared by all callers, so that made-up key ids cost no read each. */
  const fresh = Effect.flatMap(Clock.currentTimeMillis, (nowMs) =>
    Math.abs(nowMs - checkedAtMs) < checkEveryMs ? Effect.void : check,
  )

  const current = Effect.map(Clock.currentTimeMillis, (nowMs) => publishedKeys(loaded, nowMs))

  yield* check
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.andThen(
        Effect.sleep(checkEveryMs),
        Effect.catch(check, (error) =>
          Effect.logWarning("signing keys could not be read; will try again", error.message),
        ),
      ),
    ),
  )

  return SigningKeys.of({
    signer: Effect.gen(function* () {
      yield* fresh
      const key = signingKey(loaded, yield* Clock.currentTimeMillis)
      if (key !== undefined) return { kid: key.kid, privateKey: key.privateKey }
      return yield* new StoreUnavailable({ place: store.place, problem: "holds no signing key" })
    }),
    published: Effect.andThen(
      fresh,
      Effect.map(current, (keys) => keys.map((key) => key.publicJwk)),
    ),
    find: (kid) => {
      const among = Effect.map(current, (keys) => keys.find((key) => key.kid === kid)?.publicKey)
      return Effect.flatMap(among, (key) =>
        key === undefined ? Effect.andThen(fresh, among) : Effect.succeed(key),
      )
    },
    has: (kid) => loaded.some((key) => key.kid === kid),
  })
})
