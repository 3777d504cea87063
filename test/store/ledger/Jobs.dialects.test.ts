// The table of transcription jobs, over each database: one winner of every race, bounds that hold, and, where nodes
// share it, each node's own jobs reserved for it.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import type { NewJob } from "#store/ledger/JobRows.ts"
import { Jobs, maxUnfinishedOfOrg } from "#store/ledger/Jobs.ts"
import { eachDialect } from "../Dialects.ts"

const newJob = (orgId = "org_1"): NewJob => ({
  orgId,
  keyId: "key_1",
  model: "stt",
  options: {
    language: null,
    prompt: "it's \u0000 and 🎧",
    temperature: 0.25,
    punctuation: true,
    format: "json",
    granularities: ["word"],
  },
  uploadPath: `/uploads/${orgId}`,
})

const transcript = { text: "héllo", language: "en", durationMs: 10, segments: [] } as never
const never = () => 0

eachDialect(({ fresh, name, shared }) => {
  it.effect("keeps what it was given, from acceptance to a day after the end", () =>
    Effect.gen(function* () {
      const jobs = yield* Jobs
      const id = (yield* jobs.accept(newJob())) ?? ""
      expect(yield* jobs.find(id)).toMatchObject({ ...newJob(), id, isHere: true, status: "accepted" })
      expect(yield* jobs.uploads).toEqual(new Set(["/uploads/org_1"]))
      expect(yield* jobs.take(never)).toMatchObject({ id, status: "processing" })
      expect(yield* jobs.take(never)).toBeUndefined()
      yield* jobs.change(id, "return", { note: "wait", waitMs: 5_000, decodedMs: 7 })
      expect(yield* jobs.take(never)).toBeUndefined()
      yield* TestClock.adjust(5_000)
      expect(yield* jobs.take(never)).toMatchObject({ id, decodedMs: 7, note: "wait" })
      expect(yield* jobs.recover).toBe(1)
      expect(yield* jobs.take(never)).toMatchObject({ id })
      expect(yield* jobs.change(id, "complete", { transcript })).toBe(true)
      expect(yield* jobs.change(id, "cancel")).toBe(false)
      expect(yield* jobs.find(id)).toMatchObject({ status: "completed", transcript, decodedMs: 7 })
      expect(yield* jobs.uploads).toEqual(new Set())
      const sql = yield* SqlClient.SqlClient
      const ended = (ms: number) => sql`UPDATE transcription_jobs SET finished_at_ms = finished_at_ms - ${ms}`
      yield* ended(24 * 60 * 60_000)
      yield* jobs.purge
      expect(yield* jobs.find(id)).toBeDefined()
      yield* ended(1)
      yield* jobs.purge
      expect(yield* jobs.find(id)).toBeUndefined()
    }).pipe(Effect.provide(fresh)),
  )

  it.effect("has one winner, whatever meets: takers, cancellers, and an end", () =>
    Effect.gen(function* () {
      const jobs = yield* Jobs
      const ids = yield* Effect.replicateEffect(jobs.accept(newJob()), 12)
      const together = <A>(effects: ReadonlyArray<Effect.Effect<A>>) =>
        Effect.all(effects, { concurrency: "unbounded" })
      const taken: Array<string | undefined> = []
      while (taken.length < ids.length) {
        const some = yield* together(Array.from({ length: 8 }, () => jobs.take(never)))
        for (const job of some) if (job !== undefined) taken.push(job.id)
      }
      expect(new Set(taken).size).toBe(ids.length)
      expect(new Set(taken)).toEqual(new Set(ids))
      for (const id of ids) {
        const ends = [
          jobs.change(id ?? "", "complete", { transcript }),
          jobs.change(id ?? "", "cancel"),
          jobs.change(id ?? "", "fail"),
          jobs.change(id ?? "", "cancel"),
        ]
        expect((yield* together(ends)).filter(Boolean)).toHaveLength(1)
      }
    }).pipe(Effect.provide(fresh)),
  )

  it.effect("takes an organization's jobs up to its bound, also when all come at once", () =>
    Effect.gen(function* () {
      const jobs = yield* Jobs
      const accepted = yield* Effect.all(
        Array.from({ length: maxUnfinishedOfOrg + 20 }, () => jobs.accept(newJob())),
        { concurrency: "unbounded" },
      )
      expect(accepted.filter((id) => id !== undefined)).toHaveLength(maxUnfinishedOfOrg)
      expect(yield* jobs.hasCapacity("org_1")).toBe(false)
      expect(yield* jobs.accept(newJob("org_2"))).toBeDefined()
    }).pipe(Effect.provide(fresh)),
  )

  // SQLite has one node.
  if (name === "SQLite") return

  describe("of several nodes", () => {
    const nodes = Effect.gen(function* () {
      const { open } = yield* shared
      const jobsOf = (store: typeof open) =>
        Effect.flatMap(store, (layer) =>
          Effect.flatMap(Layer.build(layer), (context) => Effect.provideContext(Jobs, context)),
        )
      const sql = yield* Effect.flatMap(open, (layer) =>
        Effect.flatMap(Layer.build(layer), (context) => Effect.provideContext(SqlClient.SqlClient, context)),
      )
      return { one: yield* jobsOf(open), two: yield* jobsOf(open), sql }
    })

    it.effect("are seen and cancelled by all, and done by their own", () =>
      Effect.gen(function* () {
        const { one, two } = yield* nodes
        const id = (yield* one.accept(newJob())) ?? ""
        expect(yield* two.find(id)).toMatchObject({ id, isHere: false })
        expect([yield* two.take(never), yield* two.recover, yield* two.uploads]).toEqual([
          undefined,
          0,
          new Set(),
        ])
        expect(yield* two.othersWait("org_2")).toBe(false)
        expect(yield* one.othersWait("org_2")).toBe(true)
        yield* one.take(never)
        expect(yield* two.recover).toBe(0)
        expect(yield* two.change(id, "cancel")).toBe(true)
        expect(yield* two.endedElsewhere).toEqual([])
        expect(yield* one.endedElsewhere).toMatchObject([{ id, isHere: true, status: "cancelled" }])
        yield* one.forget(id)
        expect(yield* one.endedElsewhere).toEqual([])
        expect(yield* one.change(id, "complete", { transcript })).toBe(false)
        // What its own node ends needs no notice.
        const own = (yield* one.accept(newJob())) ?? ""
        yield* one.change(own, "cancel")
        expect(yield* one.endedElsewhere).toEqual([])
      }).pipe(Effect.scoped),
    )

    it.effect("have bounds of their own: the disk is a node's", () =>
      Effect.gen(function* () {
        const { one, two } = yield* nodes
        yield* Effect.replicateEffect(one.accept(newJob()), maxUnfinishedOfOrg)
        expect(yield* one.accept(newJob())).toBeUndefined()
        expect(yield* two.accept(newJob())).toBeDefined()
      }).pipe(Effect.scoped),
    )

    it.effect("fail when their node has not been seen for an hour, and not before", () =>
      Effect.gen(function* () {
        const { one, two, sql } = yield* nodes
        const id = (yield* one.accept(newJob())) ?? ""
        const silentFor = (ms: number) => sql`
          UPDATE nodes SET seen_at_ms = (EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT - ${ms}::BIGINT
          WHERE id = (SELECT node_id FROM transcription_jobs WHERE id = ${id})`
        yield* silentFor(59 * 60_000)
        expect(yield* two.failLost).toBe(0)
        yield* silentFor(60 * 60_000 + 1)
        expect(yield* two.failLost).toBe(1)
        expect(yield* two.failLost).toBe(0)
        expect(yield* two.find(id)).toMatchObject({
          status: "failed",
          note: "The node that had the upload has not come back within an hour",
        })
        // A node that was only disconnected learns of it.
        expect(yield* one.endedElsewhere).toMatchObject([{ id, status: "failed" }])
      }).pipe(Effect.scoped),
    )
  })
})
