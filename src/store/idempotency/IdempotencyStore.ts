// Answers of requests with an Idempotency-Key, kept for a day so that a retry gets the first answer (protocol 5.5).
// Stores ids and bytes; of a key only its digest.
//
// Bounded in count and bytes, per organization and in all: the oldest answers are dropped first. A retry of a dropped
// answer is a new request, as after a day.
import { Context, Effect, Layer, Semaphore } from "effect"
import type { SqlClient } from "effect/sql"
import { Retention } from "../sql/Retention.ts"
import { makeStoreClock } from "../sql/StoreClock.ts"
import { whileRequestWaits } from "../sql/StorePresence.ts"
import { makeIdempotencyLocks } from "./IdempotencyLocks.ts"
import { type AnswerSize, makeAnswerRows, type StoredAnswer } from "./IdempotencyRows.ts"

export type { StoredAnswer } from "./IdempotencyRows.ts"

export interface AnswerBounds {
  /** A larger body is not kept; only the fact that there was an answer. */
  readonly answerBytes: number
  readonly orgAnswers: number
  readonly orgBytes: number
  readonly allAnswers: number
  readonly allBytes: number
}

/** Guesses. 16 MiB are 5 minutes of PCM speech; a gigabyte fits a node's disk without configuration. */
const defaultBounds: AnswerBounds = {
  answerBytes: 16 * 1024 * 1024,
  orgAnswers: 50_000,
  orgBytes: 256 * 1024 * 1024,
  allAnswers: 200_000,
  allBytes: 1024 * 1024 * 1024,
}

export const AnswerBounds = Context.Reference<AnswerBounds>("edgewise/store/AnswerBounds", {
  defaultValue: () => defaultBounds,
})

export interface AnswerId {
  /** Digest of user and key; the key cannot be derived from it. */
  readonly id: string
  readonly orgId: string
  readonly userId: string
}

export class IdempotencyStore extends Context.Service<
  IdempotencyStore,
  {
    readonly has: (id: AnswerId) => Effect.Effect<boolean>
    readonly find: (id: AnswerId) => Effect.Effect<StoredAnswer | undefined>
    /** Keeps the first answer of an id; a second one is ignored. */
    readonly keep: (id: AnswerId, answer: StoredAnswer) => Effect.Effect<void>
    /**
     * With a shared store: locks this id for this node until `release`, or until the node has been silent too long.
     * Returns undefined if the lock was taken, else the digest of the request that another node is answering.
     */
    readonly claim: (id: AnswerId, digest: string) => Effect.Effect<string | undefined>
    readonly release: (id: AnswerId) => Effect.Effect<void>
    /** Removes all answers of an organization, or of one user of it. Returns their number. */
    readonly removeOf: (orgId: string, userId?: string) => Effect.Effect<number>
    /** Removes expired answers, a few at a time. Runs periodically. */
    readonly purge: Effect.Effect<void>
    /** Number and bytes of the answers kept. */
    readonly held: Effect.Effect<{ readonly answers: number; readonly bytes: number }>
  }
>()("edgewise/store/IdempotencyStore") {
  static readonly layer: Layer.Layer<IdempotencyStore, never, SqlClient.SqlClient> = Layer.effect(
    IdempotencyStore,
    Effect.suspend(() => make),
  )
}

/** Rows read at a time when answers have to be dropped. */
const removedAtOnce = 16

interface Total {
  answers: number
  bytes: number
}

const make = Effect.gen(function* () {
  const rows = yield* makeAnswerRows
  const now = yield* makeStoreClock
  const { claim, purge: purgeClaims, release } = yield* makeIdempotencyLocks(now)
  const bounds = yield* AnswerBounds
  const { answerMs } = yield* Retention
  /** Removing and counting are serialized; finding and keeping do not wait for them. */
  const tidying = yield* Semaphore.make(1)
  /**
   * Totals by organization. Undefined until the table has been counted; commands that keep no answer never count it.
   */
  let totals: Map<string, Total> | undefined
  let all: Total = { answers: 0, bytes: 0 }

  const count = Effect.gen(function* () {
    const counted = new Map<string, Total>()
    all = { answers: 0, bytes: 0 }
    for (const { answers, bytes, org_id } of yield* rows.totals) {
      counted.set(org_id, { answers, bytes })
      all.answers += answers
      all.bytes += bytes
    }
    totals = counted
    return counted
  })

  const add = (orgs: Map<string, Total>, orgId: string, answers: number, bytes: number): void => {
    const total = orgs.get(orgId) ?? { answers: 0, bytes: 0 }
    total.answers += answers
    total.bytes += bytes
    all.answers += answers
    all.bytes += bytes
    if (total.answers <= 0) orgs.delete(orgId)
    else orgs.set(orgId, total)
  }

  const remove = (orgs: Map<string, Total>, answer: AnswerSize) =>
    Effect.map(rows.remove(answer), () => add(orgs, answer.orgId, -1, -answer.sizeBytes))

  const isOver = (total: Total, answers: number, bytes: number) =>
    total.answers > answers || total.bytes > bytes

  /** Removes the oldest answers of the organization that `next` returns, until it returns undefined. */
  const shrink = Effect.fnUntraced(function* (orgs: Map<string, Total>, next: () => string | undefined) {
    for (let orgId = next(); orgId !== undefined; ) {
      const oldest = yield* rows.oldest(orgId, removedAtOnce)
      if (oldest.length === 0) return
      for (const answer of oldest) {
        yield* remove(orgs, answer)
        const following = next()
        if (following === orgId) continue
        orgId = following
        break
      }
    }
  })

  const dropOldest = Effect.fnUntraced(function* (orgs: Map<string, Total>, orgId: string) {
    const { allAnswers, allBytes, orgAnswers, orgBytes } = bounds
    const total = () => orgs.get(orgId) ?? { answers: 0, bytes: 0 }
    yield* shrink(orgs, () => (isOver(total(), orgAnswers, orgBytes) ? orgId : undefined))
    // Drops from the organization with the largest share; otherwise a few that fill the table would displace all
    // others' answers.
    const share = ({ answers, bytes }: Total): number => Math.max(answers / allAnswers, bytes / allBytes)
    const largest = (): string | undefined =>
      [...orgs].toSorted(([a, one], [b, other]) => share(other) - share(one) || (a < b ? -1 : 1))[0]?.[0]
    yield* shrink(orgs, () => (isOver(all, allAnswers, allBytes) ? largest() : undefined))
  })

  const since = Effect.map(now, (nowMs) => nowMs - answerMs)

  return IdempotencyStore.of({
    has: ({ id }) =>
      Effect.orDie(whileRequestWaits(Effect.flatMap(since, (sinceMs) => rows.has(id, sinceMs)))),

    find: ({ id }) =>
      Effect.orDie(whileRequestWaits(Effect.flatMap(since, (sinceMs) => rows.find(id, sinceMs)))),

    keep: Effect.fnUntraced(function* (answerId: AnswerId, answer: StoredAnswer) {
      const { body } = answer
      const kept =
        body !== undefined && body.length > bounds.answerBytes ? { ...answer, body: undefined } : answer
      const nowMs = yield* now
      const counted = totals ?? (yield* tidying.withPermit(count))
      const stale = yield* rows.sizeOf(answerId.id)
      // An expired answer, or an incomplete one of a process that died while writing it.
      if (stale !== undefined && !(yield* rows.has(answerId.id, nowMs - answerMs))) {
        yield* remove(counted, stale)
      }
      if (!(yield* rows.insert(answerId, kept, nowMs))) return
      add(counted, answerId.orgId, 1, kept.body?.length ?? 0)
      yield* tidying.withPermit(dropOldest(counted, answerId.orgId))
    }, Effect.orDie),

    claim: ({ id }, digest) => whileRequestWaits(claim(id, digest)),
    release: ({ id }) => release(id),

    removeOf: (orgId, userId) =>
      Effect.gen(function* () {
        const counted = totals ?? (yield* count)
        for (let removed = 0; ; ) {
          const some = yield* rows.of(orgId, userId, removedAtOnce)
          if (some.length === 0) return removed
          for (const answer of some) yield* remove(counted, answer)
          removed += some.length
        }
      }).pipe(tidying.withPermit, Effect.orDie),

    purge: Effect.gen(function* () {
      const counted = yield* count
      const sinceMs = yield* since
      yield* purgeClaims(sinceMs)
      for (;;) {
        const old = yield* rows.olderThan(sinceMs, removedAtOnce)
        if (old.length === 0) return
        for (const answer of old) yield* remove(counted, answer)
      }
    }).pipe(tidying.withPermit, Effect.orDie),

    held: Effect.orDie(Effect.map(tidying.withPermit(count), () => ({ ...all }))),
  })
})
