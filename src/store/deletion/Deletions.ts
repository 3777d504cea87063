// Deletes an organization, a user, a job or kept answers, with every text and name that the store and the uploads hold of them. What
// stays are sums by day and model under the organization's random id, for accounting.
//
// A deletion may be interrupted anywhere: its first step revokes the keys and takes the names out, and leaves a record with which
// `resume` finishes the rest. At the end what deleted rows leave in the files of SQLite is removed (Compaction).
import { unlink } from "node:fs/promises"
import { join } from "node:path"
import { Clock, Context, Duration, Effect, Layer } from "effect"
import type { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import type { ModelUsage } from "#domain/models/Usage.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { makeAccountRows } from "../accounts/AccountRows.ts"
import { Accounts, type Org } from "../accounts/Accounts.ts"
import {
  NoSuchJob,
  notWorking,
  type OrgNotFound,
  StoreUnavailable,
  UserNotFound,
} from "../files/StoreErrors.ts"
import { removeOnceFile } from "../files/WriteOnceFile.ts"
import { IdempotencyStore } from "../idempotency/IdempotencyStore.ts"
import { Jobs, type JobsOf } from "../ledger/Jobs.ts"
import { UsageLedger } from "../ledger/UsageLedger.ts"
import { Compaction } from "../sql/Compaction.ts"
import { silentMs } from "../sql/StoreNode.ts"

/** How long to wait for nodes to end deleted jobs and to remove their uploads. A guess: they look every half second. */
const nodesAnswerMs = 10_000
const askNodesEvery = Duration.millis(50)

/** A deletion that has not ended for so long was interrupted. A guess: the largest store takes less. */
const interruptedMs = 10 * 60_000

/** Work that was running at the time of a deletion may still write receipts for so long. A guess. */
const lateMs = 60 * 60_000

/** Age at which the record of a complete deletion is dropped: far above the longest request. */
const recordedMs = 30 * 24 * 60 * 60_000

/** The data directory of this process, which may hold the development key's file. Empty: none. */
export const DeletionDataDir = Context.Reference<string>("edgewise/store/DeletionDataDir", {
  defaultValue: () => "",
})

/** What was deleted, as numbers. */
export interface Deleted {
  readonly orgId: string
  readonly users: number
  readonly keys: number
  readonly clientSecrets: number
  readonly jobs: number
  readonly answers: number
  /** Single receipts that became sums. */
  readonly receipts: number
  /** Uploads of deleted jobs on the disks of nodes that did not answer; each node removes its own when it runs again. */
  readonly waitingUploads: number
  /** What the organization has used, all in all: the sums that stay. */
  readonly kept: ReadonlyArray<ModelUsage>
}

export interface DeletionOptions {
  /** No node runs on the data directory, so that this process removes the uploads. Default: false. */
  readonly alone?: boolean
}

type Deletes<E> = Effect.Effect<Deleted, E | StoreUnavailable>

export class Deletions extends Context.Service<
  Deletions,
  {
    readonly org: (name: string, options?: DeletionOptions) => Deletes<OrgNotFound>
    readonly user: (
      org: string,
      user: string,
      options?: DeletionOptions,
    ) => Deletes<OrgNotFound | UserNotFound>
    /** A job in any state, with its transcript and its upload. */
    readonly job: (org: string, id: string, options?: DeletionOptions) => Deletes<OrgNotFound | NoSuchJob>
    /** Kept answers to requests with an `Idempotency-Key`. */
    readonly answers: (org: string, options?: DeletionOptions) => Deletes<OrgNotFound>
    /** Finishes deletions that were interrupted, and sums receipts that came after a deletion. */
    readonly resume: Effect.Effect<void, StoreUnavailable>
  }
>()("edgewise/store/Deletions") {
  static readonly layer: Layer.Layer<
    Deletions,
    never,
    Accounts | IdempotencyStore | Jobs | UsageLedger | SqlClient.SqlClient
  > = Layer.effect(
    Deletions,
    Effect.suspend(() => make),
  )
}

const nothing = { users: 0, keys: 0, clientSecrets: 0, jobs: 0, answers: 0, receipts: 0, waitingUploads: 0 }

const removeFile = (path: string) =>
  Effect.tryPromise({
    try: () => unlink(path),
    catch: (cause) => cause as NodeJS.ErrnoException,
  }).pipe(
    Effect.catch((cause) =>
      cause.code === "ENOENT"
        ? Effect.void
        : Effect.fail(new StoreUnavailable({ place: path, problem: `was not removed: ${cause.message}` })),
    ),
  )

const orUnavailable = <A, E>(effect: Effect.Effect<A, E | SqlError>) =>
  Effect.mapError(effect, (error) => (isSql(error) ? notWorking(error) : (error as Exclude<E, SqlError>)))

const isSql = (error: unknown): error is SqlError =>
  typeof error === "object" && error !== null && "_tag" in error && error._tag === "SqlError"

const make = Effect.gen(function* () {
  const accounts = yield* Accounts
  const jobs = yield* Jobs
  const answers = yield* IdempotencyStore
  const ledger = yield* UsageLedger
  const rows = yield* makeAccountRows
  const { clean } = yield* Compaction
  const dataDir = yield* DeletionDataDir

  /** Deleted jobs whose uploads are still on the disk of a node that answers. */
  const waiting = Effect.fnUntraced(function* (orgId: string) {
    const left = yield* jobs.toRemoveOf(orgId)
    if (left.length === 0) return { left: 0, answering: 0 }
    const live = yield* rows.liveNodes(silentMs)
    return {
      left: left.length,
      answering: left.filter(({ nodeId }) => (nodeId === "" ? live.length > 0 : live.includes(nodeId)))
        .length,
    }
  })

  /** Deletes jobs and their uploads. Returns how many jobs, and how many uploads wait for their node. */
  const deleteJobs = Effect.fnUntraced(function* (which: JobsOf, alone: boolean) {
    const { jobs: deleted, uploads } = yield* jobs.deleteOf(which)
    for (const path of uploads) yield* removeFile(path)
    if (alone) {
      for (const { id, uploadPath } of yield* jobs.toRemoveOf(which.orgId)) {
        yield* removeFile(uploadPath)
        yield* jobs.forget(id)
      }
      return { jobs: deleted, waitingUploads: 0 }
    }
    // Not a timeout: a request's deletion cannot be interrupted.
    const untilMs = (yield* monotonicMs) + nodesAnswerMs
    for (;;) {
      const { answering, left } = yield* waiting(which.orgId)
      if (answering === 0 || (yield* monotonicMs) > untilMs) return { jobs: deleted, waitingUploads: left }
      yield* Effect.sleep(askNodesEvery)
    }
  })

  const erase = Effect.fnUntraced(function* (orgId: string, userId: string | undefined, alone: boolean) {
    const keys = yield* rows.inTransaction(rows.beginDeletion(orgId, userId))
    yield* accounts.forgetKeys(keys)
    if (dataDir !== "" && keys.some(({ development }) => development === 1)) {
      yield* removeOnceFile(join(dataDir, "dev-key"))
    }
    const keyIds = keys.map(({ id }) => id)
    const ofJobs = yield* deleteJobs(userId === undefined ? { orgId } : { orgId, keyIds }, alone)
    const keptAnswers = yield* answers.removeOf(orgId, userId)
    const clientSecrets = yield* rows.deleteSecrets(keyIds)
    const receipts = yield* ledger.summarize(userId === undefined ? { orgId } : { orgId, userId })
    const kept = yield* ledger.usage(orgId, 0)
    const accountsGone = yield* rows.inTransaction(rows.endDeletion(orgId, userId))
    yield* clean("names")
    yield* rows.completeDeletion(userId ?? orgId)
    return { orgId, ...accountsGone, clientSecrets, ...ofJobs, answers: keptAnswers, receipts, kept }
  }, orUnavailable)

  /** After a part of an organization was deleted. */
  const partOf = Effect.fnUntraced(function* (org: Org, deleted: Partial<Deleted>) {
    yield* clean("texts")
    return { orgId: org.id, ...nothing, ...deleted, kept: yield* ledger.usage(org.id, 0) }
  })

  return Deletions.of({
    org: Effect.fn("Deletions.org")(function* (name, { alone = false } = {}) {
      const org = yield* accounts.showOrg(name)
      return yield* erase(org.id, undefined, alone)
    }),

    user: Effect.fn("Deletions.user")(function* (name, user, { alone = false } = {}) {
      const org = yield* accounts.showOrg(name)
      const userId = yield* orUnavailable(rows.findUser(org.id, user))
      if (userId === undefined) return yield* new UserNotFound({ org: name, user })
      return yield* erase(org.id, userId, alone)
    }),

    job: Effect.fn("Deletions.job")(function* (name, id, { alone = false } = {}) {
      const org = yield* accounts.showOrg(name)
      const deleted = yield* orUnavailable(deleteJobs({ orgId: org.id, id }, alone))
      if (deleted.jobs === 0) return yield* new NoSuchJob({ org: name, job: id })
      return yield* partOf(org, deleted)
    }),

    answers: Effect.fn("Deletions.answers")(function* (name) {
      const org = yield* accounts.showOrg(name)
      return yield* partOf(org, { answers: yield* answers.removeOf(org.id) })
    }),

    resume: Effect.gen(function* () {
      const nowMs = yield* Clock.currentTimeMillis
      for (const deletion of yield* rows.deletionsSince(nowMs - lateMs)) {
        const { atMs, complete, orgId, userId } = deletion
        if (complete) yield* ledger.summarize(userId === undefined ? { orgId } : { orgId, userId })
        else if (atMs < nowMs - interruptedMs) yield* erase(orgId, userId, false)
      }
      yield* rows.forgetDeletions(nowMs - recordedMs)
    }).pipe(orUnavailable, Effect.asVoid),
  })
})
