// The public keys with which an edge verifies session tokens: those of its own data directory, or a key set fetched
// from the auth service and kept for a while. Knows keys by id and nothing of tokens.
import { Context, Effect, Layer, Schema, Semaphore } from "effect"
import { type CryptoKey, importJWK } from "jose"
import { keySetAgeSeconds } from "#domain/access/SigningSchedule.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { AuthUnavailable } from "#domain/wire/Errors.ts"
import { SigningKeys, signingAlgorithm } from "#store/signing/SigningKeys.ts"

export class PublicKeys extends Context.Service<
  PublicKeys,
  {
    /** Completes with undefined if no such key is published. */
    readonly find: (kid: string) => Effect.Effect<CryptoKey | undefined, AuthUnavailable>
    /** Whether the key was published at the last read, without reading again. */
    readonly has: (kid: string) => boolean
  }
>()("edgewise/api/PublicKeys") {
  /** For an auth service on the same data directory. */
  static readonly local: Layer.Layer<PublicKeys, never, SigningKeys> = Layer.effect(
    PublicKeys,
    Effect.map(SigningKeys, (keys) =>
      PublicKeys.of({
        find: (kid) =>
          Effect.catch(keys.find(kid), (error) =>
            Effect.andThen(Effect.logWarning("signing keys could not be read", error.message), unavailable),
          ),
        has: keys.has,
      }),
    ),
  )

  static readonly remote = (options: RemoteKeysOptions): Layer.Layer<PublicKeys> =>
    Layer.effect(
      PublicKeys,
      Effect.suspend(() => makeRemote(options)),
    )
}

interface RemoteKeysOptions {
  /** The auth service's `/.well-known/jwks.json`. */
  readonly url: string
  readonly fetch?: typeof fetch
}

const ageMs = keySetAgeSeconds * 1000
/** While the auth service does not answer, known keys are used for this long. A guess: time for an operator to react. */
const staleMs = 60 * 60 * 1000
/** At most one fetch in this time, so that invented key ids do not become requests to the auth service. */
const betweenFetchesMs = 10_000
const fetchTimeoutMs = 3_000
/** A key is 0.2 KB, and a key set three of them. */
const maxKeySetBytes = 64 * 1024

const unavailable = Effect.fail(new AuthUnavailable({ retryAfterMs: betweenFetchesMs }))

const KeySet = Schema.fromJsonString(
  Schema.Struct({
    keys: Schema.Array(
      Schema.Struct({
        kty: Schema.String,
        kid: Schema.optionalKey(Schema.String),
        crv: Schema.optionalKey(Schema.String),
        x: Schema.optionalKey(Schema.String),
      }),
    ),
  }),
)
const decode = Schema.decodeUnknownPromise(KeySet)

const boundedText = async (response: Response): Promise<string> => {
  const chunks: Array<Uint8Array> = []
  let sizeBytes = 0
  for await (const chunk of response.body ?? []) {
    sizeBytes += chunk.byteLength
    if (sizeBytes > maxKeySetBytes) throw new Error(`key set larger than ${maxKeySetBytes} bytes`)
    chunks.push(chunk)
  }
  return Buffer.concat(chunks).toString("utf8")
}

/** The set's Ed25519 keys; others are ignored. */
const fetchKeys = async ({ url, fetch: get = fetch }: RemoteKeysOptions, interrupted: AbortSignal) => {
  const signal = AbortSignal.any([interrupted, AbortSignal.timeout(fetchTimeoutMs)])
  const response = await get(url, { signal, redirect: "error", headers: { accept: "application/json" } })
  if (!response.ok) throw new Error(`status ${response.status}`)
  const { keys } = await decode(await boundedText(response))
  const found = new Map<string, CryptoKey>()
  for (const { crv, kid, kty, x } of keys) {
    if (kty !== "OKP" || crv !== "Ed25519" || kid === undefined || x === undefined) continue
    found.set(kid, await importJWK({ kty, crv, x }, signingAlgorithm))
  }
  return found
}

const makeRemote = Effect.fnUntraced(function* (options: RemoteKeysOptions) {
  const scope = yield* Effect.scope
  const oneAtATime = yield* Semaphore.make(1)
  let keys: ReadonlyMap<string, CryptoKey> = new Map()
  let fetchedAtMs = Number.NEGATIVE_INFINITY
  let triedAtMs = Number.NEGATIVE_INFINITY

  const refresh = Effect.gen(function* () {
    const nowMs = yield* monotonicMs
    if (nowMs - triedAtMs < betweenFetchesMs) return
    triedAtMs = nowMs
    keys = yield* Effect.tryPromise((signal) => fetchKeys(options, signal))
    fetchedAtMs = nowMs
  }).pipe(
    Effect.catch((error) =>
      Effect.logWarning("the key set could not be fetched").pipe(
        Effect.annotateLogs({ url: options.url, problem: String(error.cause) }),
      ),
    ),
    oneAtATime.withPermits(1),
  )

  return PublicKeys.of({
    has: (kid) => keys.has(kid),
    find: Effect.fnUntraced(function* (kid: string) {
      const nowMs = yield* monotonicMs
      const known = keys.get(kid)
      if (known !== undefined && nowMs - fetchedAtMs < staleMs) {
        // A known key stays valid until the next set has come, so no request waits for it.
        if (nowMs - fetchedAtMs >= ageMs) yield* Effect.forkIn(refresh, scope)
        return known
      }
      yield* refresh
      if (nowMs - fetchedAtMs >= staleMs) return yield* unavailable
      return keys.get(kid)
    }),
  })
})
