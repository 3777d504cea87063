// The keys that sign session tokens: made, rotated by age or by command, and forgotten, in a place that several processes
// may share (SigningKeyStore). Called by the auth service (sign, publish), by an edge of the same store (verify) and by
// `sessions rotate`. Knows neither tokens nor HTTP; when a key is used is SigningSchedule's.
import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import type { SqlClient } from "effect/sql"
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK } from "jose"
import { nextKeyActiveAtMs, publishedKeys, signingKey } from "#domain/access/SigningSchedule.ts"
import { StoreUnavailable } from "../files/StoreErrors.ts"
import { signingKeysIn } from "./SigningKeyFile.ts"
import { sharedSigningKeys } from "./SigningKeyRow.ts"
import type { SigningKeyStore, StoredKey } from "./SigningKeyStore.ts"

/** The one algorithm: Ed25519 signatures, under the name that RFC 8037 gave them. */
export const signingAlgorithm = "EdDSA"

/** What the world may know of a key, as it stands in the JWKS. */
export interface PublicJwk {
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

/** The contract's 5 s for a change of another process to be noticed, with room for a slow look. */
const lookEveryMs = 2_000

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

/** Adds a key to be active at that time, where there is one. */
const addKey = Effect.fnUntraced(function* (holder: SigningKeyStore, activeAtMsOf: ActiveAtMsOf) {
  let added: StoredKey | undefined
  yield* holder.change(
    Effect.fnUntraced(function* (keys) {
      const nowMs = yield* Clock.currentTimeMillis
      const activeAtMs = activeAtMsOf(keys, nowMs)
      if (activeAtMs === undefined) return undefined
      const kept = publishedKeys(keys, nowMs)
      added = yield* freshKey(nowMs, activeAtMs)
      return { keys: [...kept, added], how: kept.length === 0 ? "create" : "replace" }
    }),
  )
  return added
})

/** When a key that is added to these should be active; undefined where none is to be added. */
type ActiveAtMsOf = (keys: ReadonlyArray<StoredKey>, nowMs: number) => number | undefined

/** `endAll`: every other key is forgotten. */
const rotate = Effect.fn("SigningKeys.rotate")(function* (
  holder: SigningKeyStore,
  how: { readonly endAll: boolean },
) {
  const nowMs = yield* Clock.currentTimeMillis
  if (how.endAll) {
    const key = yield* freshKey(nowMs, nowMs)
    yield* holder.change(() => Effect.succeed({ keys: [key], how: "replace" }))
    return { kid: key.kid, activeAtMs: key.activeAtMs }
  }
  const key = yield* addKey(holder, (keys) => nextKeyActiveAtMs(keys, nowMs, 0) ?? nowMs)
  if (key === undefined) return yield* Effect.die(new Error("a key that was asked for was not added"))
  return { kid: key.kid, activeAtMs: key.activeAtMs }
})

/**
 * Makes the next key now, whatever the age of the last. With `endAll` every other key is forgotten, and every token
 * issued so far ends with them.
 */
export const rotateSigningKeys = (dataDir: string, how: { readonly endAll: boolean }) =>
  rotate(signingKeysIn(dataDir), how)

/** The same where several nodes share the store. */
export const rotateSharedSigningKeys = (how: { readonly endAll: boolean }) =>
  Effect.flatMap(sharedSigningKeys, (holder) => rotate(holder, how))

export interface SigningKeysOptions {
  /** Whether this process makes keys; one that only verifies does not. */
  readonly makesKeys: boolean
  readonly rotateEveryMs: number
}

export class SigningKeys extends Context.Service<
  SigningKeys,
  {
    /** The key that signs now. Only where this process makes keys. */
    readonly signer: Effect.Effect<Signer, StoreUnavailable>
    readonly published: Effect.Effect<ReadonlyArray<PublicJwk>, StoreUnavailable>
    /** Completes with undefined where no such key is published. */
    readonly find: (kid: string) => Effect.Effect<CryptoKey | undefined, StoreUnavailable>
    /** The same without a look: whether the key was published at the last look. */
    readonly has: (kid: string) => boolean
  }
>()("edgewise/store/SigningKeys") {
  /** The data directory must be there. */
  static readonly layer = ({
    dataDir,
    ...options
  }: SigningKeysOptions & { readonly dataDir: string }): Layer.Layer<SigningKeys, StoreUnavailable> =>
    Layer.effect(
      SigningKeys,
      Effect.suspend(() => make(signingKeysIn(dataDir), options)),
    )

  /** In the store, where several nodes share it. */
  static readonly sharedLayer = (
    options: SigningKeysOptions,
  ): Layer.Layer<SigningKeys, StoreUnavailable, SqlClient.SqlClient> =>
    Layer.effect(
      SigningKeys,
      Effect.flatMap(sharedSigningKeys, (holder) => make(holder, options)),
    )
}

const make = Effect.fnUntraced(function* (
  holder: SigningKeyStore,
  { makesKeys, rotateEveryMs }: SigningKeysOptions,
) {
  const oneAtATime = yield* Semaphore.make(1)
  let version: string | undefined
  let loaded: ReadonlyArray<Loaded> = []
  let lookedAtMs = Number.NEGATIVE_INFINITY

  const reload = Effect.gen(function* () {
    const now = yield* holder.version
    if (now === version && now !== undefined) return
    loaded = yield* Effect.forEach(yield* holder.read, load)
    version = now
  })

  const look = Effect.gen(function* () {
    const nowMs = yield* Clock.currentTimeMillis
    yield* reload
    const dueMs: ActiveAtMsOf = (keys, atMs) => nextKeyActiveAtMs(keys, atMs, rotateEveryMs)
    if (makesKeys && dueMs(loaded, nowMs) !== undefined) {
      const key = yield* addKey(holder, dueMs)
      if (key !== undefined) {
        yield* Effect.logInfo("made a signing key").pipe(
          Effect.annotateLogs({ kid: key.kid, activeInMs: key.activeAtMs - nowMs }),
        )
      }
      yield* reload
    }
    lookedAtMs = nowMs
  }).pipe(oneAtATime.withPermits(1))

  /** One look serves everybody who asks within the same moment; a made-up key id must not cost a look each time. */
  const fresh = Effect.flatMap(Clock.currentTimeMillis, (nowMs) =>
    Math.abs(nowMs - lookedAtMs) < lookEveryMs ? Effect.void : look,
  )

  const current = Effect.map(Clock.currentTimeMillis, (nowMs) => publishedKeys(loaded, nowMs))

  yield* look
  yield* Effect.forkScoped(
    Effect.forever(
      Effect.andThen(
        Effect.sleep(lookEveryMs),
        Effect.catch(look, (error) =>
          Effect.logWarning("signing keys could not be read; will look again", error.message),
        ),
      ),
    ),
  )

  return SigningKeys.of({
    signer: Effect.gen(function* () {
      yield* fresh
      const key = signingKey(loaded, yield* Clock.currentTimeMillis)
      if (key !== undefined) return { kid: key.kid, privateKey: key.privateKey }
      return yield* new StoreUnavailable({ place: holder.place, problem: "holds no signing key" })
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
