// The table of transcription jobs, over each database: one winner of every race, bounds that hold, and, where nodes
// share it, each node's own jobs reserved for it.
import { describe, expect, it } from "@effect/vitest"
import { Effect, Exit, Layer, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import type { NewJob } from "#store/ledger/JobRows.ts"
import { type Attempt, Jobs, maxUnfinishedOfOrg, type Takes } from "#store/ledger/Jobs.ts"
import { Presence, type PresenceView } from "#store/nodes/Presence.ts"
import { ownJobs } from "../../support/nodes/JobRow.ts"
import { eventually } from "../../support/nodes/TestNode.ts"
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

eachDialect(({ fresh, name, shared }) => {
  it.effect("keeps what it was given, from acceptance to a day after the end", () =>
    Effect.gen(function* () {
      const jobs = yield* Jobs
      const id = (yield* jobs.accept(newJob())) ?? ""
      expect(yield* jobs.find(id)).toMatchObject({ ...newJob(), id, isHere: true, status: "accepted" })
      expect(yield* jobs.uploads).toEqual(new Set(["/uploads/org_1"]))
      expect(yield* jobs.inWorkBut([])).toEqual([])
      expect(yield* jobs.take(ownJobs)).toMatchObject({ id, status: "processing", attempt: 1 })
      expect(yield* jobs.inWorkBut(["another"])).toMatchObject([{ id, status: "processing", attempt: 1 }])
      expect(yield* jobs.inWorkBut([id])).toEqual([])
      expect(yield* jobs.take(ownJobs)).toBeUndefined()
      const sql = yield* SqlClient.SqlClient
      // Longer than a machine stands still: the other clock is the database's.
      const waitMs = 10 * 60_000
      yield* jobs.change({ id, attempt: 1 }, "return", { note: "wait", waitMs, decodedMs: 7 })
      expect(yield* jobs.find(id)).toMatchObject({ status: "accepted", note: "wait" })
      expect(yield* jobs.take(ownJobs)).toBeUndefined()
      // That time later, by the clock of the store.
      if (name === "SQLite") yield* TestClock.adjust(waitMs)
      else yield* sql`UPDATE transcription_jobs SET not_before_ms = not_before_ms - ${waitMs}`
      expect(yield* jobs.take(ownJobs)).toMatchObject({ id, decodedMs: 7, attempt: 2 })
      expect(yield* jobs.recover).toBe(1)
      expect(yield* jobs.take(ownJobs)).toMatchObject({ id, attempt: 3 })
      // The attempts before change nothing any more.
      for (const attempt of [1, 2]) {
        expect(yield* jobs.change({ id, attempt }, "complete", { transcript })).toBe(false)
        expect(yield* jobs.change({ id, attempt }, "return")).toBe(false)
      }
      expect(yield* jobs.change({ id, attempt: 3 }, "complete", { transcript })).toBe(true)
      expect(yield* jobs.cancel(id)).toBeUndefined()
      expect(yield* jobs.find(id)).toMatchObject({ status: "completed", transcript, decodedMs: 7 })
      expect(yield* jobs.uploads).toEqual(new Set())
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
      const taken: Array<Attempt> = []
      while (taken.length < ids.length) {
        const some = yield* together(Array.from({ length: 8 }, () => jobs.take(ownJobs)))
        for (const job of some) if (job !== undefined) taken.push(job)
      }
      expect(new Set(taken.map(({ id }) => id)).size).toBe(ids.length)
      expect(new Set(taken.map(({ id }) => id))).toEqual(new Set(ids))
      for (const job of taken) {
        const cancel = Effect.map(jobs.cancel(job.id), (cancelled) => cancelled !== undefined)
        const ends = [jobs.change(job, "complete", { transcript }), cancel, jobs.change(job, "fail"), cancel]
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
      expect(yield* jobs.hasCapacity("org_1", false)).toBe(false)
      expect(yield* jobs.accept(newJob("org_2"))).toBeDefined()
    }).pipe(Effect.provide(fresh)),
  )

  // SQLite has one node.
  if (name === "SQLite") return

  describe("of several nodes", () => {
    /** One beat of each of these nodes. */
    const beatOf = (...presences: ReadonlyArray<PresenceView>) =>
      Effect.gen(function* () {
        const before = presences.map((presence) => presence.beats())
        yield* TestClock.adjust("3 seconds")
        const done = () => presences.every((presence, nth) => presence.beats() > before[nth]!)
        yield* Effect.promise(() => eventually(done, "each has beaten"))
      })
    const nodes = Effect.gen(function* () {
      const { open } = yield* shared
      const [first, second, beside] = [yield* open, yield* open, yield* open]
      const scope = yield* Effect.scope
      const scopeOfOne = yield* Scope.fork(scope)
      const context = yield* Layer.build(beside)
      const ofOne = yield* Layer.buildWithScope(first, scopeOfOne)
      const ofTwo = yield* Layer.build(second)
      const presenceOfOne = yield* Effect.provideContext(Presence, ofOne)
      const presenceOfTwo = yield* Effect.provideContext(Presence, ofTwo)
      return {
        one: yield* Effect.provideContext(Jobs, ofOne),
        two: yield* Effect.provideContext(Jobs, ofTwo),
        beatOfBoth: beatOf(presenceOfOne, presenceOfTwo),
        beatOfTwo: beatOf(presenceOfTwo),
        sql: yield* Effect.provideContext(SqlClient.SqlClient, context),
        stopOne: Scope.close(scopeOfOne, Exit.void),
        startOne: Effect.flatMap(Layer.buildWithScope(Layer.fresh(first), scope), (again) =>
          Effect.provideContext(Jobs, again),
        ),
      }
    })
    it.effect("are seen and cancelled by all, and done by their own", () =>
      Effect.gen(function* () {
        const { one, two } = yield* nodes
        const id = (yield* one.accept(newJob())) ?? ""
        expect(yield* two.find(id)).toMatchObject({ id, isHere: false })
        expect([yield* two.take(ownJobs), yield* two.recover, yield* two.uploads]).toEqual([
          undefined,
          0,
          new Set(),
        ])
        expect(yield* two.othersWait("org_2", [])).toBe(false)
        expect(yield* one.othersWait("org_2", [])).toBe(true)
        yield* one.take(ownJobs)
        expect(yield* two.recover).toBe(0)
        expect(yield* two.cancel(id)).toMatchObject({ id, isHere: false, status: "cancelled" })
        expect(yield* two.endedElsewhere(false)).toEqual([])
        expect(yield* one.endedElsewhere(false)).toMatchObject([{ id, isHere: true, status: "cancelled" }])
        yield* one.forget(id)
        expect(yield* one.endedElsewhere(false)).toEqual([])
        expect(yield* one.change({ id, attempt: 1 }, "complete", { transcript })).toBe(false)
        // What its own node ends needs no notice.
        const own = (yield* one.accept(newJob())) ?? ""
        expect(yield* one.cancel(own)).toMatchObject({ isHere: true })
        expect(yield* one.endedElsewhere(false)).toEqual([])
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

    it.effect("fail when their node is dead for an hour, and not before", () =>
      Effect.gen(function* () {
        const { beatOfTwo, one, two, stopOne, startOne } = yield* nodes
        const id = (yield* one.accept(newJob())) ?? ""
        yield* stopOne
        for (let nth = 0; nth < 7; nth++) yield* beatOfTwo
        yield* TestClock.adjust("58 minutes")
        expect(yield* two.failLost).toBe(0)
        yield* TestClock.adjust("2 minutes")
        expect(yield* two.failLost).toBe(1)
        expect(yield* two.failLost).toBe(0)
        expect(yield* two.find(id)).toMatchObject({
          status: "failed",
          note: "The node that had the upload has not come back within an hour",
        })
        // It comes back and learns of it.
        const again = yield* startOne
        expect(yield* again.endedElsewhere(false)).toMatchObject([{ id, status: "failed" }])
      }).pipe(Effect.scoped),
    )

    describe("with shared uploads", () => {
      const shared = { sizeBytes: 10, sha256: "ab" }
      const all: Takes = { ...ownJobs, models: ["stt"] }
      const sharedJob = (orgId = "org_1"): NewJob => ({ ...newJob(orgId), uploadPath: `of ${orgId}`, shared })

      it.effect("are taken by any node that has the model, and by one of them", () =>
        Effect.gen(function* () {
          const { one, two } = yield* nodes
          const id = (yield* one.accept(sharedJob())) ?? ""
          expect(yield* one.uploads).toEqual(new Set())
          expect(yield* two.take({ ...ownJobs, models: ["another"] })).toBeUndefined()
          const taken = yield* Effect.all(
            Array.from({ length: 8 }, (_, nth) => (nth % 2 === 0 ? one : two).take(all)),
            { concurrency: "unbounded" },
          )
          expect(taken.filter((job) => job !== undefined)).toMatchObject([{ id, shared, attempt: 1 }])
        }).pipe(Effect.scoped),
      )

      it.effect("are taken in turn by organization, counted over all nodes", () =>
        Effect.gen(function* () {
          const { one, two } = yield* nodes
          for (const orgId of ["a", "a", "a", "a", "b", "c", "b"]) yield* one.accept(sharedJob(orgId))
          const order: Array<string | undefined> = []
          for (let nth = 0; nth < 8; nth++) order.push((yield* (nth % 2 === 0 ? one : two).take(all))?.orgId)
          expect(order.slice(0, 3).sort()).toEqual(["a", "b", "c"])
          expect(order.slice(3, 5).sort()).toEqual(["a", "b"])
          expect(order.slice(5)).toEqual(["a", "a", undefined])
        }).pipe(Effect.scoped),
      )

      it.effect(
        "go on where the last worker stored its progress, which changes nothing once another has the job",
        () =>
          Effect.gen(function* () {
            const { one, two, sql } = yield* nodes
            const id = (yield* one.accept(sharedJob())) ?? ""
            const first = (yield* one.take(all))!
            const saved = {
              progress: { segments: [], samples: 480_000, language: "en", previousTokens: [7] },
              weights: "w",
              engineFailures: 1,
            }
            expect(yield* one.save(first, saved, 60_000)).toBe(true)
            expect(yield* two.lostOf([first])).toEqual([])
            yield* one.change(first, "return")
            expect(yield* two.find(id)).toMatchObject({
              isHere: true,
              status: "accepted",
              heardSamples: 480_000,
            })
            const second = (yield* two.take(all))!
            expect(second).toMatchObject({ id, attempt: 2, saved, decodedMs: 60_000 })
            expect(yield* one.lostOf([first])).toMatchObject([{ id }])
            expect(yield* one.save(first, saved)).toBe(false)
            expect(yield* one.change(first, "complete", { transcript })).toBe(false)
            expect(yield* one.change(first, "return")).toBe(false)
            expect(yield* two.change(second, "complete", { transcript })).toBe(true)
            // No text is left beside the transcript.
            expect(yield* sql`SELECT progress FROM transcription_jobs WHERE id = ${id}`).toEqual([
              { progress: null },
            ])
          }).pipe(Effect.scoped),
      )

      it.effect(
        "of a dead node go to the others, also when it is only frozen; of one that beats they do not",
        () =>
          Effect.gen(function* () {
            const { beatOfBoth, beatOfTwo, one, two, stopOne } = yield* nodes
            const id = (yield* one.accept(sharedJob())) ?? ""
            const cancelled = (yield* one.accept(sharedJob("org_2"))) ?? ""
            const first = (yield* one.take(all))!
            const other = (yield* one.take(all))!
            expect(new Set([first.id, other.id])).toEqual(new Set([id, cancelled]))
            for (let nth = 0; nth < 8; nth++) yield* beatOfBoth
            expect(yield* two.takeOver).toBe(0)
            yield* stopOne
            // Its node would have to end it.
            expect(yield* two.cancel(cancelled)).toMatchObject({ isHere: false })
            expect(yield* two.endedElsewhere(true)).toEqual([])
            for (let nth = 0; nth < 7; nth++) yield* beatOfTwo
            expect(yield* two.takeOver).toBe(1)
            expect(yield* two.takeOver).toBe(0)
            expect(yield* two.endedElsewhere(true)).toMatchObject([{ id: cancelled, isHere: true }])
            expect(yield* two.take(all)).toMatchObject({ id, attempt: 2 })
          }).pipe(Effect.scoped),
      )

      it.effect(
        "that are cancelled or deleted while they wait are ended by the one who asks, or by any node",
        () =>
          Effect.gen(function* () {
            const { one, two } = yield* nodes
            const id = (yield* one.accept(sharedJob())) ?? ""
            expect(yield* two.unneeded(["of org_1", "of nothing"])).toEqual(["of nothing"])
            expect(yield* two.cancel(id)).toMatchObject({ isHere: true, status: "cancelled" })
            expect([yield* one.endedElsewhere(true), yield* two.endedElsewhere(true)]).toEqual([[], []])
            expect(yield* two.unneeded(["of org_1"])).toEqual(["of org_1"])
            const deleted = (yield* one.accept(sharedJob("org_2"))) ?? ""
            expect((yield* one.deleteOf({ orgId: "org_2" })).jobs).toBe(1)
            expect(yield* one.endedElsewhere(false)).toEqual([])
            expect(yield* one.unneeded(["of org_2"])).toEqual([])
            expect(yield* two.endedElsewhere(true)).toMatchObject([{ id: deleted }])
            yield* two.forget(deleted)
            expect(yield* one.find(deleted)).toBeUndefined()
          }).pipe(Effect.scoped),
      )

      it.effect("fail where no node has their model, and any node removes their uploads", () =>
        Effect.gen(function* () {
          const { one, two } = yield* nodes
          const id = (yield* one.accept(sharedJob())) ?? ""
          expect(yield* two.unservedModels(["stt"])).toEqual([])
          expect(yield* two.unservedModels(["another"])).toEqual(["stt"])
          expect(yield* two.failUnserved("another")).toBe(0)
          expect(yield* two.failUnserved("stt")).toBe(1)
          expect(yield* one.find(id)).toMatchObject({
            status: "failed",
            note: "Model not loaded: no node has stt any more",
          })
          expect(yield* one.endedElsewhere(true)).toMatchObject([{ id, isHere: true }])
        }).pipe(Effect.scoped),
      )

      it.effect("have bounds over all nodes", () =>
        Effect.gen(function* () {
          const { one, two } = yield* nodes
          yield* Effect.replicateEffect(one.accept(sharedJob()), maxUnfinishedOfOrg)
          expect(yield* two.accept(sharedJob())).toBeUndefined()
          expect(yield* two.hasCapacity("org_1", true)).toBe(false)
          expect(yield* two.hasCapacity("org_1", false)).toBe(true)
          expect(yield* two.accept(sharedJob("org_2"))).toBeDefined()
        }).pipe(Effect.scoped),
      )

      it.effect("have old files looked for by one node at a time", () =>
        Effect.gen(function* () {
          const { one, two } = yield* nodes
          const done: Array<string> = []
          yield* one.byOneNode(
            Effect.andThen(
              two.byOneNode(Effect.sync(() => void done.push("two"))),
              Effect.sync(() => void done.push("one")),
            ),
          )
          yield* two.byOneNode(Effect.sync(() => void done.push("two")))
          expect(done).toEqual(["one", "two"])
        }).pipe(Effect.scoped),
      )
    })
  })
})
