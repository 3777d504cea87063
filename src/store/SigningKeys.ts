// The keys that sign session tokens: made, rotated by age or by command, and forgotten, in a file that several processes
// may share. Called by the auth service (sign, publish), by an edge of the same data directory (verify) and by
// `sessions rotate`. Knows neither tokens nor HTTP; when a key is used is SigningSchedule's.

import { Clock, Context, Effect, Layer, Semaphore } from "effect"
import { type CryptoKey, calculateJwkThumbprint, exportJWK, generateKeyPair, importJWK } from "jose"
import { nextKeyActiveAtMs, publishedKeys, signingKey } from "#domain/SigningSchedule.ts"
import { readKeys, type StoredKey, signingKeyFile, versionOf, writeKeys } from "./SigningKeyFile.ts"
import { StoreUnavailable } from "./StoreErrors.ts"

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

/** Adds a key that will be active at once where it is the first one or `endAll`, else after its announcement. */
const addKey = Effect.fnUntraced(function* (
  file: string,
  keys: ReadonlyArray<StoredKey>,
  activeAtMs: number,
) {
  const nowMs = yield* Clock.currentTimeMillis
  const kept = publishedKeys(keys, nowMs)
  const key = yield* freshKey(nowMs, activeAtMs)
  yield* writeKeys(file, [...kept, key], kept.length === 0 ? "create" : "replace")
  return key
})

/**
 * Makes the next key now, whatever the age of the last. With `endAll` every other key is forgotten, and every token
 * issued so far ends with them.
 */
export const rotateSigningKeys = Effect.fn("SigningKeys.rotate")(function* (
  dataDir: string,
  how: { readonly endAll: boolean },
) {
  const file = signingKeyFile(dataDir)
  const nowMs = yield* Clock.currentTimeMillis
  if (how.endAll) {
    const key = yield* freshKey(nowMs, nowMs)
    yield* writeKeys(file, [key], "replace")
    return { kid: key.kid, activeAtMs: key.activeAtMs }
  }
  const keys = yield* readKeys(file)
  const key = yield* addKey(file, keys, nextKeyActiveAtMs(keys, nowMs, 0) ?? nowMs)
  return { kid: key.kid, activeAtMs: key.activeAtMs }
})

export interface SigningKeysOptions {
  readonly dataDir: string
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
    /** The same without looking at the file: whether the key was published at the last look. */
    readonly has: (kid: string) => boolean
  }
>()("edgewise/store/SigningKeys") {
  /** The data directory must be there. */
  static readonly layer = (options: SigningKeysOptions): Layer.Layer<SigningKeys, StoreUnavailable> =>
    Layer.effect(
      SigningKeys,
      Effect.suspend(() => make(options)),
    )
}

const make = Effect.fnUntraced(function* ({ dataDir, makesKeys, rotateEveryMs }: SigningKeysOptions) {
  const file = signingKeyFile(dataDir)
  const oneAtATime = yield* Semaphore.make(1)
  let version: string | undefined
  let loaded: ReadonlyArray<Loaded> = []
  let lookedAtMs = Number.NEGATIVE_INFINITY

  const reload = Effect.gen(function* () {
    const now = yield* versionOf(file)
    if (now === version && now !== undefined) return
    loaded = yield* Effect.forEach(yield* readKeys(file), load)
    version = now
  })

  const look = Effect.gen(function* () {
    const nowMs = yield* Clock.currentTimeMillis
    yield* reload
    const activeAtMs = makesKeys ? nextKeyActiveAtMs(loaded, nowMs, rotateEveryMs) : undefined
    if (activeAtMs !== undefined) {
      const { kid } = yield* addKey(file, loaded.map(storedOf), activeAtMs)
      yield* Effect.logInfo("made a signing key").pipe(
        Effect.annotateLogs({ kid, activeInMs: activeAtMs - nowMs }),
      )
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
      return yield* new StoreUnavailable({ place: file, problem: "holds no signing key" })
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

/** A key as the file holds it, without what was made of it here. */
const storedOf = ({ activeAtMs, createdAtMs, d, kid, x }: Loaded): StoredKey => ({
  kid,
  x,
  d,
  createdAtMs,
  activeAtMs,
})
