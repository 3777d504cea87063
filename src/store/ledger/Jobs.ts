// Transcription jobs in the database: accepted, taken by a worker, ended, and deleted a day later (protocol 9.6) or on request. Every
// change checks the state that it starts from, so of two concurrent changes (a cancel and a completion) one wins. Each take raises the
// job's attempt, and what a worker changes names its attempt: who has lost a job to another node changes nothing.
//
// With a shared store a node does the jobs whose uploads lie on its own disk, and, where uploads are shared, those of all nodes; any node
// can read and cancel any job.
import { randomBytes } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { isFinished, type JobEvent, type JobStatus, nextJobStatus } from "#domain/wire/JobStatus.ts"
import { Presence, stillDead } from "../nodes/Presence.ts"
import { isKept } from "../sql/DeletedIds.ts"
import { makePadding } from "../sql/Padding.ts"
import { Retention } from "../sql/Retention.ts"
import { makeStoreClock, type StoreClock } from "../sql/StoreClock.ts"
import { databaseNow, StoreNode } from "../sql/StoreNode.ts"
import {
  type Job,
  type JobChange,
  type JobOptions,
  type JobRow,
  jobColumns,
  jobOf,
  type NewJob,
  type SavedProgress,
} from "./JobRows.ts"

/**
 * Unfinished jobs on a node at most, each with an upload of up to 100 MB on its disk: per organization, so that one
 * alone cannot fill the disk, and in all. Where uploads are shared, an organization may have as many on all nodes together, and all
 * organizations the second number for each node that runs. Guesses.
 */
export const maxUnfinishedOfOrg = 100
export const maxUnfinished = 1_000

/** Jobs that other nodes ended, read at a time. */
const endedAtOnce = 100

/**
 * When a node's counter has stood still for this long, `failLost` takes it to be lost and fails the transcription jobs whose uploads are on
 * its disk. Long enough to repair or move a machine, short enough for a waiting client. A guess.
 */
export const lostMs = 60 * 60_000

/** The same; tests shorten it. */
export const LostAfter = Context.Reference<number>("edgewise/store/LostAfter", {
  defaultValue: () => lostMs,
})

/** States `LostAfter`. */
const lostNote = "The node that had the upload has not come back within an hour"

/** The note of a job while its organization cannot pay for more of it. */
export const unpaidNote = "paused: the organization has no credit left"

/** Written over the options of a deleted job whose row its node has not removed yet. */
const noOptions: JobOptions = {
  language: null,
  prompt: "",
  temperature: 0,
  punctuation: null,
  format: "json",
  granularities: [],
}

/** Value of `ended_elsewhere` of a deleted job: its node removes its upload and then its row. */
const toRemove = 2

/** Rows of ended jobs removed in one statement; a transcript of hours has a megabyte. */
const removedAtOnce = 4

/** Which jobs of an organization are deleted: all, those of some keys, or one. */
export interface JobsOf {
  readonly orgId: string
  readonly keyIds?: ReadonlyArray<string>
  readonly id?: string
}

interface JobsDeleted {
  readonly jobs: number
  /** Files of jobs of this node that have just ended: their row is gone, and the file perhaps not yet. */
  readonly uploads: ReadonlyArray<string>
}

/** A node removes an upload right after it has written the end of its job, within this time. A guess. */
const uploadGoneMs = 60_000

/**
 * A deleted job whose upload is still on the disk of its node. That node removes it; if no node runs, the program that deleted the job
 * does.
 */
interface JobToRemove {
  readonly id: string
  /** Empty if the upload is shared and no node works at the job: then any node removes it. */
  readonly nodeId: string
  readonly uploadPath: string
}

/** Which jobs a node may take. */
export interface Takes {
  /** Ids of the node's models: a shared job of another model is left to other nodes. */
  readonly models: ReadonlyArray<string>
  /** SQLite only: the larger, the later an organization was served. Postgres counts over all nodes. */
  readonly lastServed: (orgId: string) => number
}

/** A job that a worker has taken. */
export interface Attempt {
  readonly id: string
  readonly attempt: number
}

export class Jobs extends Context.Service<
  Jobs,
  {
    /** Returns the new job's id, or undefined if too many jobs are unfinished. */
    readonly accept: (job: NewJob) => Effect.Effect<string | undefined>
    /** True if `accept` would take another job of the organization, with a shared upload or not. */
    readonly hasCapacity: (orgId: string, shared: boolean) => Effect.Effect<boolean>
    /** True if a job of the organization waits for credit. */
    readonly isUnpaid: (orgId: string) => Effect.Effect<boolean>
    /** The clock by which rows are written and removed. */
    readonly now: StoreClock
    /** Finds a job of any node. */
    readonly find: (id: string) => Effect.Effect<Job | undefined>
    /** Starts and returns the oldest waiting job of the organization that was served longest ago. */
    readonly take: (takes: Takes) => Effect.Effect<Job | undefined>
    /** Of the jobs that this node has taken and that have not ended, by their rows, those other than these. */
    readonly inWorkBut: (known: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Job>>
    /** True if a job of any other organization could be taken now. */
    readonly othersWait: (orgId: string, models: ReadonlyArray<string>) => Effect.Effect<boolean>
    /** Stores where the work at a job stands. False if the attempt is no longer the job's. */
    readonly save: (attempt: Attempt, saved: SavedProgress, decodedMs?: number) => Effect.Effect<boolean>
    /** Those of the attempts whose job another node has taken, or put back into the queue. */
    readonly lostOf: (attempts: ReadonlyArray<Attempt>) => Effect.Effect<ReadonlyArray<Attempt>>
    /** Removes the row of a job that has ended. False if there is none. */
    readonly remove: (id: string) => Effect.Effect<boolean>
    /**
     * Deletes jobs. The texts of all go at once, and the rows of those that have ended. A job that has not ended is cancelled; its own
     * node removes its upload and its row.
     */
    readonly deleteOf: (which: JobsOf) => Effect.Effect<JobsDeleted>
    /** Deleted jobs of the organization whose uploads and rows their nodes have not removed yet. */
    readonly toRemoveOf: (orgId: string) => Effect.Effect<ReadonlyArray<JobToRemove>>
    /**
     * What a worker does with the job that it has taken. False if the job's state does not allow the event, or another attempt has begun.
     */
    readonly change: (attempt: Attempt, event: JobEvent, change?: JobChange) => Effect.Effect<boolean>
    /** Cancels a job, also one that another node works at. Returns it as it is now; undefined if it has ended already. */
    readonly cancel: (id: string) => Effect.Effect<Job | undefined>
    /** True if the job was cancelled during the attempt. A condition for `UsageLedger.settleIf`. */
    readonly wasCancelled: (attempt: Attempt) => Effect.Effect<boolean, SqlError>
    /**
     * Jobs of this node that another process has ended or deleted, and, for a node that reaches the shared uploads, those of no node. A job
     * is listed until it is passed to `forget`.
     */
    readonly endedElsewhere: (shared: boolean) => Effect.Effect<ReadonlyArray<Job>>
    /** Takes a job off the list `endedElsewhere`. Also removes its row if the job was deleted. */
    readonly forget: (id: string) => Effect.Effect<void>
    /**
     * Fails the jobs of nodes that are dead for `LostAfter`, if no other node has their uploads. Returns their number.
     */
    readonly failLost: Effect.Effect<number>
    /** Puts the jobs with shared uploads of dead nodes back into the queue of all. Returns their number. */
    readonly takeOver: Effect.Effect<number>
    /** Models other than these for which shared jobs wait. */
    readonly unservedModels: (models: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>>
    /** Fails the shared jobs that wait for a model. Any node then removes their uploads. Returns their number. */
    readonly failUnserved: (model: string) => Effect.Effect<number>
    /** Runs `work` unless another node of the database is at it. */
    readonly byOneNode: (work: Effect.Effect<void>) => Effect.Effect<void>
    /** Of these names of shared uploads, those that no job needs. */
    readonly unneeded: (names: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<string>>
    /**
     * After a start: puts jobs that were being processed when the node died back into the queue. Returns their number.
     */
    readonly recover: Effect.Effect<number>
    /** Upload files on this node's disk that unfinished jobs still need. */
    readonly uploads: Effect.Effect<ReadonlySet<string>>
    /** Deletes jobs that ended longer ago than they are kept. */
    readonly purge: Effect.Effect<void>
  }
>()("edgewise/store/Jobs") {
  static readonly layer: Layer.Layer<Jobs, never, SqlClient.SqlClient> = Layer.effect(
    Jobs,
    Effect.suspend(() => make),
  )
}

const make = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient
  const node = yield* StoreNode
  const presence = yield* Presence
  const lostAfterMs = yield* LostAfter
  const isShared = node !== ""
  const padding = makePadding(sql)
  const now = yield* makeStoreClock
  const { jobMs } = yield* Retention
  const columns = sql.literal(jobColumns)

  /** The time now in statements: the database's own, where nodes share it. */
  const nowInSql = (nowMs: number) => (isShared ? sql.literal(databaseNow) : sql`${nowMs}`)

  const after = (nowMs: number, waitMs: number) =>
    isShared ? sql`${nowInSql(nowMs)} + ${sql.literal(String(Math.round(waitMs)))}` : sql`${nowMs + waitMs}`

  const byId = (id: string) =>
    Effect.map(
      sql<JobRow>`SELECT ${columns} FROM transcription_jobs WHERE id = ${id}`,
      ([row]) => row && jobOf(row, node),
    )

  const hasCapacity = (orgId: string, shared: boolean) => {
    const counted = shared ? sql`shared = 1` : sql`shared = 0 AND node_id = ${node}`
    const most = shared ? maxUnfinished * presence.living() : maxUnfinished
    return Effect.map(
      sql<{ readonly own: number | null; readonly unfinished: number }>`
        SELECT SUM(CASE WHEN org_id = ${orgId} THEN 1 ELSE 0 END) AS own, COUNT(*) AS unfinished
        FROM transcription_jobs WHERE status IN ('accepted', 'processing') AND ${counted}`,
      ([row]) => (row?.own ?? 0) < maxUnfinishedOfOrg && (row?.unfinished ?? 0) < most,
    )
  }

  /** Removes rows, a few in each statement. */
  const removeAll = Effect.fnUntraced(function* (which: Statement.Fragment, nowMs: number) {
    const uploads: Array<string> = []
    for (let jobs = 0; ; ) {
      const some = yield* sql<
        Pick<JobRow, "node_id" | "shared" | "upload_path"> & { readonly finished_at_ms: number }
      >`
        DELETE FROM transcription_jobs WHERE id IN (
          SELECT id FROM transcription_jobs WHERE ${which} LIMIT ${removedAtOnce})
        RETURNING node_id, shared, upload_path, finished_at_ms`
      for (const row of some) {
        const isFresh = Number(row.finished_at_ms) > nowMs - uploadGoneMs
        if (isFresh && Number(row.shared) === 0 && row.node_id === node) uploads.push(row.upload_path)
      }
      jobs += some.length
      if (some.length < removedAtOnce) return { jobs, uploads }
      yield* Effect.sleep(0)
    }
  })

  /**
   * Postgres: a lock, so that jobs are counted and accepted one at a time: those of one node, or those with shared uploads. On SQLite
   * transactions are serialized anyway.
   */
  const acceptAlone = (shared: boolean) =>
    sql.onDialectOrElse({
      pg: () => sql`SELECT pg_advisory_xact_lock(hashtext(${shared ? "shared uploads" : node}))`,
      orElse: () => Effect.void,
    })

  /**
   * Moves a job that is still in `from`, and in the named attempt, if one is named. A shared job that is not in work belongs to no node.
   * Returns the row after it. Dies if the database cannot be written.
   */
  const move = Effect.fnUntraced(function* (
    which: { readonly id: string; readonly attempt?: number },
    from: JobStatus,
    to: JobStatus,
    { decodedMs, note, saved, transcript, waitMs }: JobChange,
  ) {
    const finished = isFinished(to)
    const nowMs = yield* now
    const [row] = yield* sql<JobRow>`UPDATE transcription_jobs SET
        status = ${to},
        note = ${note ?? null},
        transcript = ${transcript === undefined ? null : JSON.stringify(transcript)},
        decoded_ms = COALESCE(${decodedMs ?? null}, decoded_ms),
        progress = ${finished ? sql`NULL` : saved === undefined ? sql`progress` : sql`${JSON.stringify(saved)}`},
        heard_samples = ${saved === undefined ? sql`heard_samples` : sql`${saved.progress?.samples ?? 0}`},
        not_before_ms = ${waitMs === undefined ? sql`0` : after(nowMs, waitMs)},
        finished_at_ms = ${finished ? sql`${nowMs}` : sql`NULL`},
        node_id = ${to === "accepted" ? sql`CASE WHEN shared = 1 THEN '' ELSE node_id END` : sql`node_id`},
        ended_elsewhere = CASE WHEN node_id = ${node} OR (shared = 1 AND node_id = '') THEN 0 ELSE 1 END
      WHERE id = ${which.id} AND status = ${from}
        AND ${which.attempt === undefined ? sql`1 = 1` : sql`attempt = ${which.attempt}`}
      RETURNING ${columns}`
    return row && jobOf(row, node)
  })

  const moveBy = Effect.fnUntraced(function* (
    which: { readonly id: string; readonly attempt?: number },
    event: JobEvent,
    change: JobChange = {},
  ) {
    for (;;) {
      const job = yield* byId(which.id)
      const to = job === undefined ? undefined : nextJobStatus(job.status, event)
      if (job === undefined || to === undefined) return undefined
      if (which.attempt !== undefined && job.attempt !== which.attempt) return undefined
      const moved = yield* move(which, job.status, to, change)
      if (moved !== undefined) return moved
    }
  })

  /** SQL: jobs that this node could take now. */
  const isWaiting = (nowMs: number, models: ReadonlyArray<string>) =>
    isShared
      ? sql`status = 'accepted' AND not_before_ms <= ${nowInSql(nowMs)}
            AND ((shared = 0 AND node_id = ${node}) OR (shared = 1 AND ${sql.in("model", models)}))`
      : sql`status = 'accepted' AND not_before_ms <= ${nowMs} AND shared = 0 AND node_id = ${node}`

  const takeAlone = Effect.fnUntraced(function* ({ lastServed, models }: Takes) {
    const nowMs = yield* now
    const isFree = isWaiting(nowMs, models)
    const waiting = yield* sql<{ readonly org_id: string; readonly first_ms: number }>`
      SELECT org_id, MIN(accepted_at_ms) AS first_ms FROM transcription_jobs WHERE ${isFree} GROUP BY org_id`
    const [next] = [...waiting].sort(
      (a, b) => lastServed(a.org_id) - lastServed(b.org_id) || a.first_ms - b.first_ms,
    )
    if (next === undefined) return undefined
    const [row] = yield* sql<JobRow>`
      UPDATE transcription_jobs SET status = 'processing', note = NULL, attempt = attempt + 1
      WHERE id = (SELECT id FROM transcription_jobs WHERE ${isFree} AND org_id = ${next.org_id}
                  ORDER BY accepted_at_ms, id LIMIT 1)
      RETURNING ${columns}, progress`
    return row
  })

  /**
   * One statement over all nodes. It visits each organization with waiting jobs once, by the index, and does not sort their jobs. Jobs
   * that another node is just taking are passed over.
   */
  const takeTogether = Effect.fnUntraced(function* ({ models }: Takes) {
    const isFree = isWaiting(0, models)
    const [row] = yield* sql<JobRow>`
      WITH RECURSIVE waiting AS (
        (SELECT org_id, accepted_at_ms FROM transcription_jobs WHERE ${isFree}
         ORDER BY org_id, accepted_at_ms LIMIT 1)
        UNION ALL
        SELECT later.org_id, later.accepted_at_ms FROM waiting CROSS JOIN LATERAL (
          SELECT org_id, accepted_at_ms FROM transcription_jobs
          WHERE ${isFree} AND transcription_jobs.org_id > waiting.org_id
          ORDER BY org_id, accepted_at_ms LIMIT 1) AS later
      ), turns AS (
        SELECT waiting.org_id FROM waiting LEFT JOIN job_turns ON job_turns.org_id = waiting.org_id
        ORDER BY COALESCE(job_turns.served, 0), waiting.accepted_at_ms
      ), next AS (
        SELECT job.id, job.org_id FROM turns CROSS JOIN LATERAL (
          SELECT id, org_id FROM transcription_jobs WHERE ${isFree} AND transcription_jobs.org_id = turns.org_id
          ORDER BY accepted_at_ms, id LIMIT 1 FOR UPDATE SKIP LOCKED) AS job
        LIMIT 1
      ), turn AS (
        INSERT INTO job_turns (org_id, served)
        SELECT next.org_id, (SELECT COALESCE(MAX(served), 0) + 1 FROM job_turns) FROM next
        ON CONFLICT (org_id) DO UPDATE SET served = EXCLUDED.served
      )
      UPDATE transcription_jobs SET status = 'processing', note = NULL, attempt = attempt + 1,
        node_id = ${node}
      WHERE id = (SELECT next.id FROM next)
      RETURNING ${columns}, progress`
    return row
  })

  const take = sql.onDialectOrElse({
    pg: () => (isShared ? takeTogether : takeAlone),
    orElse: () => takeAlone,
  })

  return Jobs.of({
    accept: Effect.fnUntraced(
      function* (job) {
        const id = `job_transcription_${randomBytes(12).toString("hex")}`
        const { shared } = job
        const nowMs = yield* now
        yield* acceptAlone(shared !== undefined)
        if (!(yield* hasCapacity(job.orgId, shared !== undefined))) return undefined
        const [accepted] = yield* sql<{ readonly id: string }>`
          INSERT INTO transcription_jobs (id, org_id, key_id, model, status, options, upload_path, node_id,
                                          not_before_ms, accepted_at_ms, shared, upload_bytes, upload_sha256)
          SELECT ${id}, ${job.orgId}, ${job.keyId}, ${job.model}, 'accepted', ${padding.json(JSON.stringify(job.options))},
                 ${job.uploadPath}, ${shared === undefined ? node : ""}, 0, ${nowMs},
                 ${shared === undefined ? 0 : 1}, ${shared?.sizeBytes ?? 0}, ${shared?.sha256 ?? ""}
          WHERE ${isKept(sql, [job.orgId, job.keyId])} RETURNING id`
        return accepted?.id
      },
      sql.withTransaction,
      Effect.orDie,
    ),
    hasCapacity: (orgId, shared) => Effect.orDie(hasCapacity(orgId, shared)),
    isUnpaid: (orgId) =>
      sql`SELECT id FROM transcription_jobs
        WHERE status IN ('accepted', 'processing') AND org_id = ${orgId} AND note = ${unpaidNote} LIMIT 1`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.orDie,
      ),
    now,
    othersWait: (orgId, models) =>
      Effect.flatMap(
        now,
        (nowMs) => sql`SELECT id FROM transcription_jobs
          WHERE ${isWaiting(nowMs, models)} AND org_id <> ${orgId} LIMIT 1`,
      ).pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.orDie,
      ),
    save: ({ attempt, id }, saved, decodedMs) =>
      sql`UPDATE transcription_jobs
        SET progress = ${JSON.stringify(saved)}, heard_samples = ${saved.progress?.samples ?? 0},
          decoded_ms = COALESCE(${decodedMs ?? null}, decoded_ms)
        WHERE id = ${id} AND attempt = ${attempt} AND status = 'processing' RETURNING id`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.orDie,
      ),
    lostOf: (attempts) =>
      attempts.length === 0
        ? Effect.succeed([])
        : sql<Attempt>`SELECT id, attempt FROM transcription_jobs
            WHERE ${sql.in(
              "id",
              attempts.map(({ id }) => id),
            )} AND status <> 'accepted'`.pipe(
            Effect.map((rows) => {
              const taken = new Map(rows.map(({ attempt, id }) => [id, Number(attempt)]))
              return attempts.filter(({ attempt, id }) => taken.get(id) !== attempt)
            }),
            Effect.orDie,
          ),
    find: (id) => Effect.orDie(byId(id)),
    remove: (id) =>
      sql`DELETE FROM transcription_jobs
        WHERE id = ${id} AND status NOT IN ('accepted', 'processing') AND ended_elsewhere = 0 RETURNING id`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.orDie,
      ),
    deleteOf: Effect.fnUntraced(function* (which) {
      const nowMs = yield* now
      const chosen = sql.and([
        sql`org_id = ${which.orgId}`,
        ...(which.keyIds === undefined ? [] : [sql.in("key_id", which.keyIds)]),
        ...(which.id === undefined ? [] : [sql`id = ${which.id}`]),
      ])
      const left = yield* sql`
        UPDATE transcription_jobs
        SET status = 'cancelled', options = ${JSON.stringify(noOptions)}, note = NULL, transcript = NULL,
            progress = NULL, finished_at_ms = ${nowMs}, ended_elsewhere = ${toRemove}
        WHERE status IN ('accepted', 'processing') AND ${chosen} RETURNING id`
      // Ended by another node, and their own has not removed the upload yet.
      const ending = yield* sql`
        UPDATE transcription_jobs
        SET options = ${JSON.stringify(noOptions)}, note = NULL, transcript = NULL, ended_elsewhere = ${toRemove}
        WHERE ended_elsewhere = 1 AND ${chosen} RETURNING id`
      const { jobs, uploads } = yield* removeAll(sql.and([sql`ended_elsewhere = 0`, chosen]), nowMs)
      return { jobs: left.length + ending.length + jobs, uploads }
    }, Effect.orDie),
    toRemoveOf: (orgId) =>
      sql<{ readonly id: string; readonly node_id: string; readonly upload_path: string }>`
        SELECT id, node_id, upload_path FROM transcription_jobs
        WHERE org_id = ${orgId} AND ended_elsewhere = ${toRemove}`.pipe(
        Effect.map((rows) =>
          rows.map((row) => ({ id: row.id, nodeId: row.node_id, uploadPath: row.upload_path })),
        ),
        Effect.orDie,
      ),
    take: (takes) => Effect.orDie(Effect.map(take(takes), (row) => row && jobOf(row, node))),
    inWorkBut: (known) =>
      sql<JobRow>`
        SELECT ${columns}, progress FROM transcription_jobs
        WHERE status = 'processing' AND node_id = ${node}
          AND ${known.length === 0 ? sql`1 = 1` : sql`NOT (${sql.in("id", known)})`}`.pipe(
        Effect.map((rows) => rows.map((row) => jobOf(row, node))),
        Effect.orDie,
      ),
    change: (attempt, event, change) =>
      Effect.orDie(Effect.map(moveBy(attempt, event, change), (moved) => moved !== undefined)),
    cancel: (id) => Effect.orDie(moveBy({ id }, "cancel")),
    wasCancelled: ({ attempt, id }) =>
      sql`SELECT id FROM transcription_jobs WHERE id = ${id} AND attempt = ${attempt} AND status = 'cancelled'`.pipe(
        Effect.map((rows) => rows.length > 0),
      ),
    endedElsewhere: (shared) =>
      sql<JobRow>`
        SELECT ${columns} FROM transcription_jobs
        WHERE ended_elsewhere > 0 AND ${shared ? sql`(node_id = ${node} OR (shared = 1 AND node_id = ''))` : sql`node_id = ${node}`}
        LIMIT ${endedAtOnce}`.pipe(
        Effect.map((rows) => rows.map((row) => jobOf(row, node))),
        Effect.orDie,
      ),
    forget: (id) =>
      Effect.andThen(
        sql`DELETE FROM transcription_jobs WHERE id = ${id} AND ended_elsewhere = ${toRemove}`,
        sql`UPDATE transcription_jobs SET ended_elsewhere = 0 WHERE id = ${id} AND ended_elsewhere = 1`,
      ).pipe(Effect.asVoid, Effect.orDie),
    failLost: Effect.gen(function* () {
      const lost = (yield* presence.dead).filter(({ stillMs }) => stillMs >= lostAfterMs)
      if (lost.length === 0) return 0
      const nowMs = yield* now
      const failed = yield* sql`
        UPDATE transcription_jobs
        SET status = 'failed', note = ${lostNote}, finished_at_ms = ${nowMs}, ended_elsewhere = 1
        WHERE status IN ('accepted', 'processing') AND shared = 0 AND node_id IN (${stillDead(sql, lost)})
        RETURNING id`
      return failed.length
    }).pipe(Effect.orDie),
    takeOver: Effect.gen(function* () {
      const dead = yield* presence.dead
      if (dead.length === 0) return 0
      // Those that have ended are only to be cleaned up: by any node.
      const moved = yield* sql<{ readonly status: JobStatus }>`
        UPDATE transcription_jobs
        SET node_id = '', status = CASE WHEN status = 'processing' THEN 'accepted' ELSE status END
        WHERE shared = 1 AND (status = 'processing' OR ended_elsewhere > 0)
          AND node_id IN (${stillDead(sql, dead)})
        RETURNING status`
      return moved.filter(({ status }) => status === "accepted").length
    }).pipe(Effect.orDie),
    unservedModels: (models) =>
      sql<{ readonly model: string }>`
        SELECT DISTINCT model FROM transcription_jobs WHERE status = 'accepted' AND shared = 1`.pipe(
        Effect.map((rows) => rows.map(({ model }) => model).filter((model) => !models.includes(model))),
        Effect.orDie,
      ),
    failUnserved: (model) =>
      Effect.flatMap(
        now,
        (nowMs) => sql`
          UPDATE transcription_jobs
          SET status = 'failed', note = ${`Model not loaded: no node has ${model} any more`}, progress = NULL,
            finished_at_ms = ${nowMs}, ended_elsewhere = 1
          WHERE status = 'accepted' AND shared = 1 AND model = ${model} RETURNING id`,
      ).pipe(
        Effect.map((rows) => rows.length),
        Effect.orDie,
      ),
    byOneNode: (work) =>
      sql
        .onDialectOrElse({
          pg: () =>
            sql.withTransaction(
              Effect.gen(function* () {
                const [row] = yield* sql<{ readonly locked: boolean }>`
                SELECT pg_try_advisory_xact_lock(hashtext('shared uploads: old files')) AS locked`
                if (row?.locked === true) yield* work
              }),
            ),
          orElse: () => work,
        })
        .pipe(Effect.orDie),
    unneeded: (names) =>
      names.length === 0
        ? Effect.succeed([])
        : sql<{ readonly upload_path: string }>`
            SELECT upload_path FROM transcription_jobs
            WHERE shared = 1 AND ${sql.in("upload_path", names)}
              AND (status IN ('accepted', 'processing') OR ended_elsewhere > 0)`.pipe(
            Effect.map((rows) => {
              const needed = new Set(rows.map((row) => row.upload_path))
              return names.filter((name) => !needed.has(name))
            }),
            Effect.orDie,
          ),
    recover: sql`
      UPDATE transcription_jobs
      SET status = 'accepted', node_id = CASE WHEN shared = 1 THEN '' ELSE node_id END
      WHERE status = 'processing' AND node_id = ${node} RETURNING id`.pipe(
      Effect.map((rows) => rows.length),
      Effect.orDie,
    ),
    uploads: sql<{ readonly upload_path: string }>`
      SELECT upload_path FROM transcription_jobs
      WHERE status IN ('accepted', 'processing') AND shared = 0 AND node_id = ${node}`.pipe(
      Effect.map((rows) => new Set(rows.map((row) => row.upload_path))),
      Effect.orDie,
    ),
    purge: Effect.gen(function* () {
      const nowMs = yield* now
      yield* removeAll(sql`finished_at_ms < ${nowMs - jobMs} AND ended_elsewhere <> ${toRemove}`, nowMs)
      // An organization without a row was served longest ago.
      yield* sql`DELETE FROM job_turns WHERE NOT EXISTS (
        SELECT 1 FROM transcription_jobs
        WHERE transcription_jobs.org_id = job_turns.org_id AND status IN ('accepted', 'processing'))`
    }).pipe(Effect.orDie),
  })
})
