// The job workers over a store that fails now and then: accepted jobs are done all the same once it works again.
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Layer } from "effect"
import { TestClock } from "effect/testing"
import { Drain } from "#actors/Drain.ts"
import { wrongKind } from "#actors/model/ModelHandle.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import { Decoder } from "#audio/Decoder.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { ModelNotLoaded, PaymentRequired } from "#domain/wire/Errors.ts"
import type { JobEvent } from "#domain/wire/JobStatus.ts"
import type { EngineKind } from "#engines/protocol/Verbs.ts"
import { TranscriptionJobs } from "#services/jobs/TranscriptionJobs.ts"
import { Accounts } from "#store/accounts/Accounts.ts"
import { StoreUnavailable } from "#store/files/StoreErrors.ts"
import { Jobs } from "#store/ledger/Jobs.ts"
import { UsageLedger } from "#store/ledger/UsageLedger.ts"
import { jobRow } from "../support/nodes/JobRow.ts"

const job = jobRow("none")

interface Found {
  readonly entry: { readonly id: string; readonly kind: EngineKind; readonly price: object }
  readonly current: () => undefined
  readonly facts: () => undefined
}

/** A model that transcribes nothing. */
const textModel: Found = {
  entry: { id: "none", kind: "text", price: {} },
  current: () => undefined,
  facts: () => undefined,
}

interface Others {
  /** The model of a job; undefined where the node has none. */
  readonly found?: () => Found | undefined
  readonly ledger?: Partial<UsageLedger["Service"]>
}

/** The services under the workers, as far as a job of a model that is not there or transcribes nothing needs them. */
const under = (jobs: Partial<Jobs["Service"]>, { found = () => textModel, ledger = {} }: Others = {}) => {
  const never = () => Effect.die(new Error("not expected"))
  const store: Jobs["Service"] = {
    accept: never,
    hasCapacity: never,
    isUnpaid: never,
    now: Effect.succeed(0),
    find: never,
    remove: never,
    deleteOf: never,
    toRemoveOf: never,
    take: never,
    inWorkBut: () => Effect.succeed([]),
    othersWait: never,
    change: never,
    recover: Effect.succeed(0),
    save: never,
    lostOf: () => Effect.succeed([]),
    cancel: never,
    wasCancelled: never,
    takeOver: Effect.succeed(0),
    byOneNode: never,
    unneeded: never,
    unservedModels: never,
    failUnserved: never,
    endedElsewhere: () => Effect.succeed([]),
    forget: never,
    failLost: Effect.succeed(0),
    uploads: Effect.succeed(new Set()),
    purge: Effect.void,
    ...jobs,
  }
  const get = (id: string, kind: EngineKind) => {
    const model = found()
    if (model === undefined) return Effect.fail(new ModelNotLoaded({ model: id }))
    return model.entry.kind === kind ? Effect.succeed(model) : Effect.fail(wrongKind(id, kind))
  }
  const registry = { all: () => [], find: found, model: () => undefined, get }
  return TranscriptionJobs.layer.pipe(
    Layer.provide([
      Drain.layer,
      Layer.succeed(Jobs, store),
      Layer.succeed(Accounts, { principalOf: () => Effect.succeed({}) } as unknown as Accounts["Service"]),
      Layer.succeed(UsageLedger, { flush: Effect.void, ...ledger } as unknown as UsageLedger["Service"]),
      Layer.succeed(ModelRegistry, registry as unknown as ModelRegistry["Service"]),
      Layer.succeed(Decoder, {} as Decoder["Service"]),
    ]),
  )
}

const broken = Effect.die(new StoreUnavailable({ place: "store", problem: "database is locked" }))

describe("a store that fails", () => {
  it.effect("to be read does not end the workers", () =>
    Effect.gen(function* () {
      const ended = yield* Deferred.make<JobEvent>()
      let looks = 0
      const jobs = under({
        take: () => (++looks === 1 ? broken : Effect.succeed(looks === 2 ? job : undefined)),
        change: (_id, event) => Effect.as(Deferred.succeed(ended, event), true),
      })
      yield* Effect.gen(function* () {
        yield* TestClock.adjust("10 seconds")
        expect(yield* Deferred.await(ended)).toBe("fail")
        expect(looks).toBeGreaterThan(1)
      }).pipe(Effect.provide(jobs))
    }),
  )

  it.effect("to say that a job was taken: it begins all the same, once", () =>
    Effect.gen(function* () {
      const events: Array<string> = []
      let rows: ReadonlyArray<typeof job> = []
      const jobs = under({
        // The row is changed, and the answer is lost.
        take: () =>
          Effect.suspend(() => {
            if (events.length > 0) return Effect.succeed(undefined)
            events.push("take")
            rows = [job]
            return broken
          }),
        inWorkBut: (known) => Effect.sync(() => rows.filter(({ id }) => !known.includes(id))),
        change: ({ attempt, id }, event) =>
          Effect.sync(() => {
            expect([id, attempt]).toEqual([job.id, job.attempt])
            events.push(event)
            rows = []
            return true
          }),
      })
      yield* Effect.gen(function* () {
        yield* TestClock.adjust("1 minute")
        expect(events).toEqual(["take", "fail"])
      }).pipe(Effect.provide(jobs))
    }),
  )

  it.effect("to take a job's end takes it when it works again, and the job is not repeated", () =>
    Effect.gen(function* () {
      const events: Array<JobEvent> = []
      let looks = 0
      const jobs = under({
        take: () => Effect.sync(() => (++looks === 1 ? job : undefined)),
        change: (_id, event) =>
          Effect.suspend(() => {
            events.push(event)
            return events.length === 1 ? broken : Effect.succeed(true)
          }),
      })
      yield* Effect.gen(function* () {
        yield* TestClock.adjust("10 seconds")
        expect(events).toEqual(["fail", "fail"])
      }).pipe(Effect.provide(jobs))
    }),
  )
})

describe("a node that stops", () => {
  it.effect("while a job is being taken has it back in the queue", () =>
    Effect.gen(function* () {
      const taking = yield* Deferred.make<void>()
      const written = yield* Deferred.make<void>()
      const events: Array<JobEvent> = []
      let looks = 0
      const jobs = under(
        {
          // The database changes the row of the first, and the answer is slow.
          take: () =>
            ++looks > 1
              ? Effect.undefined
              : Effect.as(Effect.andThen(Deferred.succeed(taking, undefined), Deferred.await(written)), job),
          change: (_id, event) => Effect.sync(() => events.push(event) > 0),
        },
        { ledger: { reserve: () => Effect.never } },
      )
      const stopping = yield* Effect.gen(function* () {
        yield* TestClock.adjust("1 second")
        yield* Deferred.await(taking)
      }).pipe(Effect.provide(jobs), Effect.forkChild)
      yield* Deferred.await(taking)
      yield* TestClock.adjust("1 second")
      yield* Deferred.succeed(written, undefined)
      yield* Fiber.join(stopping)
      expect(events).toEqual(["return"])
    }),
  )
})

describe("a job that its organization cannot pay for", () => {
  const ears = { ...textModel, entry: { ...textModel.entry, kind: "transcription" as const } }
  const dayMs = 24 * 3_600_000
  for (const [age, event] of [
    [dayMs, "return"],
    [dayMs + 1, "fail"],
  ] as const) {
    it.effect(`at an age of ${age} ms: ${event}`, () =>
      Effect.gen(function* () {
        const changed = yield* Deferred.make<readonly [JobEvent, string | undefined]>()
        let looks = 0
        const jobs = under(
          {
            now: Effect.succeed(5_000 + age),
            take: () => Effect.sync(() => (++looks === 1 ? { ...job, acceptedAtMs: 5_000 } : undefined)),
            change: (_id, event, change) => Effect.as(Deferred.succeed(changed, [event, change?.note]), true),
          },
          { found: () => ears, ledger: { reserve: () => Effect.fail(new PaymentRequired()) } },
        )
        yield* Effect.gen(function* () {
          yield* TestClock.adjust("1 second")
          const note = {
            return: "paused: the organization has no credit left",
            fail: "The organization had no credit for a day",
          }[event]
          expect(yield* Deferred.await(changed)).toEqual([event, note])
        }).pipe(Effect.provide(jobs))
      }),
    )
  }
})

describe("a job of a model that the catalog no longer has", () => {
  /** What becomes of the job while `minutes` pass. */
  const becomesAfter = (minutes: number, found: () => Found | undefined) =>
    Effect.gen(function* () {
      const events: Array<readonly [JobEvent, string | undefined]> = []
      let readyAtMs: number | undefined = 0
      const jobs = under(
        {
          take: () =>
            Effect.map(monotonicMs, (nowMs) => {
              if (readyAtMs === undefined || nowMs < readyAtMs) return undefined
              readyAtMs = undefined
              return job
            }),
          change: (_id, event, change) =>
            Effect.map(monotonicMs, (nowMs) => {
              events.push([event, change?.note])
              if (event === "return") readyAtMs = nowMs + (change?.waitMs ?? 0)
              return true
            }),
        },
        { found },
      )
      yield* TestClock.adjust(`${minutes} minutes`).pipe(Effect.provide(jobs))
      return events
    })

  it.effect("waits for 10 minutes, and then fails with the reason", () =>
    Effect.gen(function* () {
      const early = yield* becomesAfter(9, () => undefined)
      expect(early.length).toBeGreaterThan(10)
      expect(early.every(([event]) => event === "return")).toBe(true)
      const late = yield* becomesAfter(11, () => undefined)
      // The end of the test may interrupt the removal of the upload; the store ignores the return that follows.
      expect(late.filter(([event]) => event === "fail")).toEqual([
        ["fail", "Model not loaded: the node no longer has none"],
      ])
    }),
  )
})
