// The sessions that are open on this node with each client secret: how many there may be, and what all sessions of a secret may cost
// together. The table holds only secrets with an open session or with a charge that is not in the store yet. The store keeps the
// charges, so they outlast a session, hold for all nodes and survive a restart.
import { Clock, Context, Deferred, Effect, Layer, Schedule, type Scope, Semaphore } from "effect"
import {
  maxMicroDollarsOf,
  type SessionLimits,
  sessionsAtOnce,
} from "#domain/conversation/ClientSecretTerms.ts"
import { monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { RateLimited, Unauthorized } from "#domain/wire/Errors.ts"
import { ClientSecrets, type FoundSecret } from "#store/accounts/ClientSecrets.ts"
import { SpendingLimit } from "#store/ledger/SpendingLimit.ts"

/**
 * A session whose client has sent nothing for this long may have lost its connection, which a node notices only after two minutes. A
 * new session takes its place. A microphone sends audio many times a second. A guess.
 */
export const silentMs = 10_000

/** A charge that the store does not take is tried again so often, once a second. A guess. */
const mostTries = 300

export interface SecretSession {
  /** Undefined where the secret has no limit of cost. */
  readonly spending: SpendingLimit | undefined
  /** The client has sent something. */
  readonly heard: () => void
  /** Completes when a new session has taken the place of this one. */
  readonly replaced: Effect.Effect<void>
}

interface Open {
  heardAtMs: number
  readonly replaced: Deferred.Deferred<void>
}

interface Use {
  readonly spending: SpendingLimit | undefined
  readonly open: Set<Open>
  /** Charges on their way to the store. */
  writes: number
}

export class SecretSessions extends Context.Service<
  SecretSessions,
  {
    /**
     * Counts a session until the scope closes. Refused where the cost is used up, and where `max_sessions` others are open whose
     * clients all have sent something lately.
     */
    readonly enter: (
      secret: Pick<FoundSecret, "id" | "spentMicroDollars">,
      limits: SessionLimits,
    ) => Effect.Effect<SecretSession, RateLimited | Unauthorized, Scope.Scope>
    /** Secrets in the table. */
    readonly size: () => number
  }
>()("edgewise/api/SecretSessions") {
  static readonly layer: Layer.Layer<SecretSessions, never, ClientSecrets> = Layer.effect(
    SecretSessions,
    Effect.suspend(() => make),
  )
}

const make = Effect.gen(function* () {
  const secrets = yield* ClientSecrets
  const clock = yield* Clock.Clock
  const scope = yield* Effect.scope
  const uses = new Map<string, Use>()

  const dropIfUnused = (id: string, use: Use): void => {
    if (use.open.size === 0 && use.writes === 0 && uses.get(id) === use) uses.delete(id)
  }

  const newUse = (id: string, mostMicroDollars: number | undefined): Use => {
    // One after the other: the sum that the store answers then holds all charges before.
    const inOrder = Semaphore.makeUnsafe(1)
    const record = (microDollars: number): Effect.Effect<void> =>
      Effect.suspend(() => {
        use.writes++
        return secrets.spend(id, microDollars).pipe(
          Effect.uninterruptible,
          Effect.retry({ schedule: Schedule.spaced("1 second"), times: mostTries }),
          Effect.matchEffect({
            onSuccess: (sum) => Effect.sync(() => use.spending?.recorded(microDollars, sum)),
            onFailure: () => Effect.logError("what a client secret was charged could not be written"),
          }),
          inOrder.withPermit,
          Effect.ensuring(
            Effect.sync(() => {
              use.writes--
              dropIfUnused(id, use)
            }),
          ),
          // The session does not wait for the store.
          Effect.forkIn(scope),
        )
      })
    const spending = mostMicroDollars === undefined ? undefined : new SpendingLimit(mostMicroDollars, record)
    const use: Use = { spending, open: new Set(), writes: 0 }
    return use
  }

  /** Why a session may not be opened. Where all of a secret are open, one that was silent for long is told to end. */
  const refusal = ({ open, spending }: Use, most: number): RateLimited | Unauthorized | undefined => {
    if (spending?.isReached === true) return new Unauthorized({ reason: "spent-secret" })
    if (open.size < most) return undefined
    const [oldest] = [...open].toSorted((a, b) => a.heardAtMs - b.heardAtMs)
    const leftMs = (oldest?.heardAtMs ?? 0) + silentMs - monotonicMsOf(clock)
    if (oldest === undefined || leftMs > 0) {
      const problem = `The client secret has ${most} sessions open, its max_sessions`
      return new RateLimited({ retryAfterMs: Math.max(1, leftMs), problem })
    }
    open.delete(oldest)
    Deferred.doneUnsafe(oldest.replaced, Effect.void)
    return undefined
  }

  const enter: SecretSessions["Service"]["enter"] = ({ id, spentMicroDollars }, limits) =>
    Effect.map(
      Effect.acquireRelease(
        // One step, so that two sessions that begin at the same time share the entry.
        Effect.suspend(() => {
          const use = uses.get(id) ?? newUse(id, maxMicroDollarsOf(limits))
          use.spending?.known(spentMicroDollars)
          const refused = refusal(use, limits.max_sessions ?? sessionsAtOnce.default)
          if (refused !== undefined) return Effect.fail(refused)
          uses.set(id, use)
          const one: Open = { heardAtMs: monotonicMsOf(clock), replaced: Deferred.makeUnsafe() }
          use.open.add(one)
          return Effect.succeed({ use, one })
        }),
        ({ one, use }) =>
          Effect.sync(() => {
            use.open.delete(one)
            dropIfUnused(id, use)
          }),
      ),
      ({ one, use }) => ({
        spending: use.spending,
        heard: () => {
          one.heardAtMs = monotonicMsOf(clock)
        },
        replaced: Deferred.await(one.replaced),
      }),
    )

  return SecretSessions.of({ enter, size: () => uses.size })
})
