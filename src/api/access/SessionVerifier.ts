// Session tokens at an edge: verifies a token once, caches the result by the token's digest, and checks on every
// request whether the API key behind it is still valid. Keeps no token.
import { hash } from "node:crypto"
import { Clock, Effect, Layer } from "effect"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { type AuthUnavailable, Unauthorized } from "#domain/wire/Errors.ts"
import { Accounts, type Principal } from "#store/accounts/Accounts.ts"
import { RowCache } from "#store/accounts/RowCache.ts"
import { SessionTokens } from "./Authentication.ts"
import { PublicKeys } from "./PublicKeys.ts"
import { endOf, type VerifiedSession, verifySession } from "./SessionToken.ts"

/** Cached tokens, about 0.6 KB each. A guess at the number of sessions in use on a node at once. */
const capacity = 20_000
/** A token is verified again at least once a minute, so that its key's publication is checked as often. A guess. */
const lifeMs = 60_000

export const sessionVerifier: Layer.Layer<SessionTokens, never, Accounts | PublicKeys> = Layer.effect(
  SessionTokens,
  Effect.gen(function* () {
    const accounts = yield* Accounts
    const keys = yield* PublicKeys
    const verified = new RowCache<VerifiedSession>({ capacity, lifeMs })
    const principalOf = ({ claims }: VerifiedSession) =>
      Effect.map(accounts.principalOf(claims.key_id), (principal) => ({
        ...principal,
        expiresAtMs: endOf(claims),
      }))
    const expired = Effect.fail(new Unauthorized({ reason: "expired-token" }))

    return SessionTokens.of({
      verify: (token): Effect.Effect<Principal, Unauthorized | AuthUnavailable> =>
        Effect.withFiber((fiber) => {
          const clock = fiber.getRef(Clock.Clock)
          const nowMs = clock.currentTimeMillisUnsafe()
          const ageMs = monotonicMsOf(clock)
          const digest = hash("sha256", token, "base64")
          const session = verified.get(digest, ageMs)
          if (session !== undefined && keys.has(session.kid)) {
            return nowMs >= endOf(session.claims) ? expired : principalOf(session)
          }
          return Effect.flatMap(verifySession(token, nowMs, keys.find), (checked) => {
            verified.set(digest, checked, ageMs)
            return principalOf(checked)
          })
        }),
    })
  }),
)
