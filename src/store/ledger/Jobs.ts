// Transcription jobs in the database: accepted, taken by a worker, ended, and deleted a day later (protocol 9.6) or on request. Every
// change checks the state that it starts from, so of two concurrent changes (a cancel and a completion) one wins. With
// a shared store each node processes the jobs whose uploads lie on its own disk; all nodes can read and cancel any job.
import { randomBytes } from "node:crypto"
import { Context, Effect, Layer } from "effect"
import { SqlClient, type Statement } from "effect/sql"
import { isFinished, type JobEvent, type JobStatus, nextJobStatus } from "#domain/wire/JobStatus.ts"
import { isKept } from "../sql/DeletedIds.ts"
import { makePadding } from "../sql/Padding.ts"
import { Retention } from "../sql/Retention.ts"
import { makeStoreClock, type StoreClock } from "../sql/StoreClock.ts"
import { databaseNow, StoreNode } from "../sql/StoreNode.ts"
import { type Job, type JobChange, type JobOptions, type JobRow, jobOf, type NewJob } from "./JobRows.ts"

/**
 * Unfinished jobs on a node at most, each with an upload of up to 100 MB on its disk: per organization, so that one
 * alone cannot fill the disk, and in all. Guesses.
 */
export const maxUnfinishedOfOrg = 100
export const maxUnfinished = 1_000

/** Jobs that other nodes ended, read at a time. */
const endedAtOnce = 100

/**
 * When a node has not been seen for this long, `failLost` takes it to be lost and fails its transcription jobs, because their uploads are
 * on its disk. Long enough to repair or move a machine, short enough for a waiting client. A guess.
 */
export const lostMs = 60 * 60_000

/** States `lostMs`. */
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

export interface JobsDeleted {
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
export interface JobToRemove {
  readonly id: string
  readonly nodeId: string
  readonly uploadPath: string
}

export class Jobs extends Context.Service<
  Jobs,
  {
    /** Returns the new job's id, or undefined if too many jobs are unfinished. */
    readonly accept: (job: NewJob) => Effect.Effect<string | undefined>
    /** True if `accept` would take another job of the organization. */
    readonly hasCapacity: (orgId: string) => Effect.Effect<boolean>
    /** True if a job of the organization waits for credit. */
    readonly isUnpaid: (orgId: string) => Effect.Effect<boolean>
    /** The clock by which rows are written and removed. */
    readonly now: StoreClock
    /** Finds a job of any node. */
    readonly find: (id: string) => Effect.Effect<Job | undefined>
    /** Starts and returns the oldest waiting job of the organization that was served longest ago. */
    readonly take: (lastServed: (orgId: string) => number) => Effect.Effect<Job | undefined>
    /** True if a job of any other organization could be taken now. */
    readonly othersWait: (orgId: string) => Effect.Effect<boolean>
    /** Removes the row of a job that has ended. False if there is none. */
    readonly remove: (id: string) => Effect.Effect<boolean>
    /**
     * Deletes jobs. The texts of all go at once, and the rows of those that have ended. A job that has not ended is cancelled; its own
     * node removes its upload and its row.
     */
    readonly deleteOf: (which: JobsOf) => Effect.Effect<JobsDeleted>
    /** Deleted jobs of the organization whose uploads and rows their nodes have not removed yet. */
    readonly toRemoveOf: (orgId: string) => Effect.Effect<ReadonlyArray<JobToRemove>>
    /** False if the job's state does not allow the event. */
    readonly change: (id: string, event: JobEvent, change?: JobChange) => Effect.Effect<boolean>
    /** Jobs of this node that another process has ended or deleted. A job is listed until it is passed to `forget`. */
    readonly endedElsewhere: Effect.Effect<ReadonlyArray<Job>>
    /** Takes a job off the list `endedElsewhere`. Also removes its row if the job was deleted. */
    readonly forget: (id: string) => Effect.Effect<void>
    /**
     * Fails the jobs of nodes that have not been seen for `lostMs`, because no other node has their uploads. Returns
     * their number.
     */
    readonly failLost: Effect.Effect<number>
    /**
     * After a start: puts jobs that were being processed when the node died back into the queue. Returns their number.
     */
    readonly recover: Effect.Effect<number>
    /** Upload files that unfinished jobs still need. */
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
  const isShared = node !== ""
  const padding = makePadding(sql)
  const now = yield* makeStoreClock
  const { jobMs } = yield* Retention

  const byId = (id: string) =>
    Effect.map(sql<JobRow>`SELECT * FROM transcription_jobs WHERE id = ${id}`, ([row]) =>
      row === undefined ? undefined : jobOf(row, node),
    )

  const hasCapacity = (orgId: string) =>
    Effect.map(
      sql<{ readonly own: number | null; readonly unfinished: number }>`
        SELECT SUM(CASE WHEN org_id = ${orgId} THEN 1 ELSE 0 END) AS own, COUNT(*) AS unfinished
        FROM transcription_jobs WHERE status IN ('accepted', 'processing') AND node_id = ${node}`,
      ([row]) => (row?.own ?? 0) < maxUnfinishedOfOrg && (row?.unfinished ?? 0) < maxUnfinished,
    )

  /**
   * Postgres: a lock, so that the jobs of one node are counted and accepted one at a time. On SQLite transactions are
   * serialized anyway.
   */
  const acceptAlone = sql.onDialectOrElse({
    pg: () => sql`SELECT pg_advisory_xact_lock(hashtext(${node}))`,
    orElse: () => Effect.void,
  })

  /** Removes rows, a few in each statement. */
  const removeAll = Effect.fnUntraced(function* (which: Statement.Fragment, nowMs: number) {
    const uploads: Array<string> = []
    for (let jobs = 0; ; ) {
      const some = yield* sql<Pick<JobRow, "node_id" | "upload_path"> & { readonly finished_at_ms: number }>`
        DELETE FROM transcription_jobs WHERE id IN (
          SELECT id FROM transcription_jobs WHERE ${which} LIMIT ${removedAtOnce})
        RETURNING node_id, upload_path, finished_at_ms`
      for (const row of some) {
        const isFresh = Number(row.finished_at_ms) > nowMs - uploadGoneMs
        if (isFresh && row.node_id === node) uploads.push(row.upload_path)
      }
      jobs += some.length
      if (some.length < removedAtOnce) return { jobs, uploads }
      yield* Effect.sleep(0)
    }
  })

  /** Moves a job if it is still in `from`. Dies if the database cannot be written. */
  const move = (id: string, from: JobStatus, to: JobStatus, change: JobChange, nowMs: number) => {
    const finished = isFinished(to)
    return sql`UPDATE transcription_jobs SET
        status = ${to},
        note = ${change.note ?? null},
        transcript = ${change.transcript === undefined ? null : JSON.stringify(change.transcript)},
        decoded_ms = COALESCE(${change.decodedMs ?? null}, decoded_ms),
        not_before_ms = ${change.waitMs === undefined ? 0 : nowMs + change.waitMs},
        finished_at_ms = ${finished ? nowMs : null},
        ended_elsewhere = CASE WHEN node_id = ${node} THEN 0 ELSE 1 END
      WHERE id = ${id} AND status = ${from} RETURNING id`.pipe(Effect.map((rows) => rows.length === 1))
  }

  const change: Jobs["Service"]["change"] = Effect.fnUntraced(function* (id, event, extra = {}) {
    for (;;) {
      const job = yield* byId(id)
      const to = job === undefined ? undefined : nextJobStatus(job.status, event)
      if (job === undefined || to === undefined) return false
      const nowMs = yield* now
      if (yield* move(id, job.status, to, extra, nowMs)) return true
    }
  }, Effect.orDie)

  return Jobs.of({
    accept: Effect.fnUntraced(
      function* (job) {
        const id = `job_transcription_${randomBytes(12).toString("hex")}`
        const nowMs = yield* now
        yield* acceptAlone
        if (!(yield* hasCapacity(job.orgId))) return undefined
        const [accepted] = yield* sql<{ readonly id: string }>`
          INSERT INTO transcription_jobs (id, org_id, key_id, model, status, options, upload_path, node_id,
                                          not_before_ms, accepted_at_ms)
          SELECT ${id}, ${job.orgId}, ${job.keyId}, ${job.model}, 'accepted',
                 ${padding.json(JSON.stringify(job.options))}, ${job.uploadPath}, ${node}, 0, ${nowMs}
          WHERE ${isKept(sql, [job.orgId, job.keyId])} RETURNING id`
        return accepted?.id
      },
      sql.withTransaction,
      Effect.orDie,
    ),
    hasCapacity: (orgId) => Effect.orDie(hasCapacity(orgId)),
    isUnpaid: (orgId) =>
      sql`SELECT id FROM transcription_jobs
        WHERE status IN ('accepted', 'processing') AND org_id = ${orgId} AND note = ${unpaidNote} LIMIT 1`.pipe(
        Effect.map((rows) => rows.length > 0),
        Effect.orDie,
      ),
    now,
    othersWait: (orgId) =>
      Effect.flatMap(
        now,
        (nowMs) => sql`SELECT id FROM transcription_jobs
          WHERE status = 'accepted' AND not_before_ms <= ${nowMs} AND org_id <> ${orgId} AND node_id = ${node}
          LIMIT 1`,
      ).pipe(
        Effect.map((rows) => rows.length > 0),
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
            finished_at_ms = ${nowMs}, ended_elsewhere = ${toRemove}
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
    take: Effect.fnUntraced(function* (lastServed) {
      const nowMs = yield* now
      const waiting = yield* sql<{ readonly org_id: string; readonly first_ms: number }>`
        SELECT org_id, MIN(accepted_at_ms) AS first_ms FROM transcription_jobs
        WHERE status = 'accepted' AND not_before_ms <= ${nowMs} AND node_id = ${node} GROUP BY org_id`
      const [next] = [...waiting].sort(
        (a, b) => lastServed(a.org_id) - lastServed(b.org_id) || a.first_ms - b.first_ms,
      )
      if (next === undefined) return undefined
      const [row] = yield* sql<JobRow>`
        SELECT * FROM transcription_jobs
        WHERE status = 'accepted' AND not_before_ms <= ${nowMs} AND org_id = ${next.org_id} AND node_id = ${node}
        ORDER BY accepted_at_ms, id LIMIT 1`
      if (row === undefined) return undefined
      return (yield* move(row.id, "accepted", "processing", {}, nowMs))
        ? jobOf({ ...row, status: "processing" }, node)
        : undefined
    }, Effect.orDie),
    change,
    endedElsewhere: sql<JobRow>`
      SELECT * FROM transcription_jobs WHERE ended_elsewhere > 0 AND node_id = ${node}
      LIMIT ${endedAtOnce}`.pipe(
      Effect.map((rows) => rows.map((row) => jobOf(row, node))),
      Effect.orDie,
    ),
    forget: (id) =>
      Effect.andThen(
        sql`DELETE FROM transcription_jobs WHERE id = ${id} AND ended_elsewhere = ${toRemove}`,
        sql`UPDATE transcription_jobs SET ended_elsewhere = 0 WHERE id = ${id} AND ended_elsewhere = 1`,
      ).pipe(Effect.asVoid, Effect.orDie),
    failLost: isShared
      ? Effect.flatMap(
          now,
          (nowMs) => sql`
            UPDATE transcription_jobs
            SET status = 'failed', note = ${lostNote}, finished_at_ms = ${nowMs}, ended_elsewhere = 1
            WHERE status IN ('accepted', 'processing') AND node_id IN
              (SELECT nodes.id FROM nodes WHERE nodes.seen_at_ms < ${sql.literal(databaseNow)} - ${lostMs}::BIGINT)
            RETURNING id`,
        ).pipe(
          Effect.map((rows) => rows.length),
          Effect.orDie,
        )
      : Effect.succeed(0),
    recover: sql`
      UPDATE transcription_jobs SET status = 'accepted'
      WHERE status = 'processing' AND node_id = ${node} RETURNING id`.pipe(
      Effect.map((rows) => rows.length),
      Effect.orDie,
    ),
    uploads: sql<{ readonly upload_path: string }>`
      SELECT upload_path FROM transcription_jobs
      WHERE status IN ('accepted', 'processing') AND node_id = ${node}`.pipe(
      Effect.map((rows) => new Set(rows.map((row) => row.upload_path))),
      Effect.orDie,
    ),
    purge: Effect.flatMap(now, (nowMs) =>
      removeAll(sql`finished_at_ms < ${nowMs - jobMs} AND ended_elsewhere <> ${toRemove}`, nowMs),
    ).pipe(Effect.asVoid, Effect.orDie),
  })
})
