// An edge's token verifier in a process of its own, over a store in memory: verifies tokens and returns the cost.
import { setFlagsFromString } from "node:v8"
import { runInNewContext } from "node:vm"
import { Effect, Exit, Layer } from "effect"
import { type CryptoKey, generateKeyPair } from "jose"
import { SessionTokens } from "#api/access/Authentication.ts"
import { PublicKeys } from "#api/access/PublicKeys.ts"
import { claimsOf, signSession } from "#api/access/SessionToken.ts"
import { sessionVerifier } from "#api/access/SessionVerifier.ts"
import { SlidingWindowLimiter } from "#domain/access/SlidingWindowLimiter.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { sqliteStoreLayer } from "../../src/store/Store.ts"
import { serveCommands } from "../support/CommandChannel.ts"

export interface Work {
  readonly cached: number
  readonly fresh: number
  readonly users: number
}

export interface Verified {
  readonly cachedUs: number
  readonly freshUs: number
  readonly forgedUs: number
  readonly admitUs: number
  readonly userBytes: number
}

setFlagsFromString("--expose-gc")
const collect = runInNewContext("gc") as () => void

const cpuUs = (): number => {
  const { system, user } = process.cpuUsage()
  return user + system
}

/** CPU time of one of `times` runs, microseconds. */
const costOf = <A, E, R>(times: number, work: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const before = cpuUs()
    yield* work
    return (cpuUs() - before) / times
  })

const keysOf = (publicKey: CryptoKey) =>
  Layer.succeed(PublicKeys, { find: () => Effect.succeed(publicKey), has: () => true })

const measureTokens = ({ cached, fresh }: Work) =>
  Effect.gen(function* () {
    const { privateKey, publicKey } = yield* Effect.promise(() =>
      generateKeyPair("EdDSA", { crv: "Ed25519" }),
    )
    const accounts = yield* Accounts
    const { apiKey } = yield* accounts.createKey({ org: "acme" })
    const principal = yield* accounts.authenticate(apiKey)
    const context = yield* Layer.build(
      sessionVerifier.pipe(Layer.provide([keysOf(publicKey), Layer.succeed(Accounts, accounts)])),
    )
    const { verify } = yield* Effect.provideContext(SessionTokens, context)
    const token = (jti: string) => {
      const claims = claimsOf({ principal, jti, nowMs: Date.now(), lifetimeSeconds: 3_600 })
      return signSession(claims, { kid: "one", privateKey })
    }
    const tokens = yield* Effect.forEach(
      Array.from({ length: fresh }, (_, i) => `${i}`),
      token,
    )
    // The claims of one token with the signature of another.
    const forged = tokens.map((good, i) => {
      const other = tokens[(i + 1) % tokens.length] ?? good
      return good.slice(0, good.lastIndexOf(".")) + other.slice(other.lastIndexOf("."))
    })
    const freshUs = yield* costOf(fresh, Effect.forEach(tokens, verify, { discard: true }))
    const forgedUs = yield* costOf(
      fresh,
      Effect.forEach(forged, (bad) => Effect.exit(verify(bad)), { discard: true }),
    )
    const known = verify(tokens[0]!)
    const cachedUs = yield* costOf(cached, Effect.replicateEffect(known, cached, { discard: true }))
    if (Exit.isSuccess(yield* Effect.exit(verify(forged[0]!))))
      return yield* Effect.die("a forged token passed")
    return { cachedUs, freshUs, forgedUs }
  }).pipe(Effect.scoped, Effect.provide(sqliteStoreLayer(":memory:")))

const measureUsers = ({ users }: Work) => {
  const window = new SlidingWindowLimiter({ limit: 100, maxUsers: users })
  collect()
  const heapBefore = process.memoryUsage().heapUsed
  const before = cpuUs()
  // As long as the store's ids.
  for (let i = 0; i < users; i++) window.admit(`user_${String(i).padStart(17, "0")}`, i / 100)
  const admitUs = (cpuUs() - before) / users
  collect()
  const userBytes = (process.memoryUsage().heapUsed - heapBefore) / users
  if (window.users !== users) throw new Error("a user is missing")
  return { admitUs, userBytes }
}

serveCommands({
  verify: async (work: Work): Promise<Verified> => ({
    ...(await Effect.runPromise(measureTokens(work))),
    ...measureUsers(work),
  }),
})
