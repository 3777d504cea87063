// Work behind answers as spans: none where no traces are exported, exactly one end in every case, bounded, and inside
// the trace of the request that it came from.
import { Effect, Exit, Scope } from "effect"
import { SocketCloseError, SocketError } from "effect/socket/Socket"
import fc from "fast-check"
import { expect, it } from "vitest"
import type { LiveSession } from "#actors/live/LiveSession.ts"
import type { LiveError, SessionLease } from "#actors/live/SessionLease.ts"
import { SessionTrace, traceSession } from "#api/tracing/SessionTrace.ts"
import { CurrentNodeMeters, NodeMeters } from "#http/NodeMeters.ts"
import { CurrentRequest, nowMs, RequestContext } from "#http/RequestContext.ts"
import { type EndedWork, TracedWork, workBehind } from "#http/TracedWork.ts"
import { inTraceOf, JobTrace } from "#services/jobs/JobTrace.ts"
import { newKept } from "#services/jobs/JobWorld.ts"
import { type Span, spansOf, traceOf, traceparentOf } from "../../src/telemetry/Trace.ts"
import { jobRow } from "../support/nodes/JobRow.ts"

const job = jobRow("listener")

const request = () => new RequestContext("my-request", () => "")

/** A node that exports traces, and what it would have exported. */
const traced = () => {
  const works: Array<EndedWork> = []
  const meters = new NodeMeters([])
  meters.tracer = { traceparentOf, ended: (work) => void works.push(work) }
  const spans = () => works.flatMap(spansOf)
  return { meters, works, spans, tracer: meters.tracer }
}

const factsOf = ({ attributes }: Span) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]))

it("is not followed where no traces are exported: nothing is made, kept or stored", async () => {
  const meters = new NodeMeters([])
  expect(workBehind(meters, "live transcription", request())).toBe(undefined)
  expect(JobTrace.begin(meters, job, newKept(undefined))).toBe(undefined)
  expect(inTraceOf(request(), job, meters)).toBe(job)
  const scope = Scope.makeUnsafe()
  const before = JSON.stringify(scope.state)
  const none = await traceSession("live transcription", () => ({})).pipe(
    Effect.provideService(CurrentNodeMeters, meters),
    Scope.provide(scope),
    Effect.runPromise,
  )
  expect(none).toBe(undefined)
  expect(JSON.stringify(scope.state)).toBe(before)
})

it("goes on in its request's trace, and is not sampled where that is not", () => {
  const { meters, tracer } = traced()
  const notes = request()
  const work = workBehind(meters, "completions socket", notes)!
  const inner = work.begin("generation")
  const own = traceOf(notes)
  expect(traceOf(work.notes)).toMatchObject({ traceId: own.traceId, parentSpanId: own.spanId, sampled: true })
  expect(traceOf(inner.notes).parentSpanId).toBe(traceOf(work.notes).spanId)
  const unwanted = request()
  unwanted.traceparent = `00-${"a".repeat(32)}-${"b".repeat(16)}-00`
  expect(traceOf(new TracedWork(tracer, "generation", "x", traceparentOf(unwanted)).notes)).toMatchObject({
    traceId: "a".repeat(32),
    sampled: false,
  })
})

it("ends once, with a bounded number of steps, all of them inside it", () => {
  fc.assert(
    fc.property(
      fc.array(fc.constantFrom("decode", "settle", "engine", "accepted", "first", "end"), { maxLength: 60 }),
      fc.boolean(),
      (marks, failed) => {
        const { meters, spans, works } = traced()
        const work = workBehind(meters, "transcription job", request())!
        for (const mark of marks) {
          if (mark === "decode" || mark === "settle") work.step(mark, nowMs())
          else if (mark === "engine") work.engineEnded()
          else if (mark === "accepted") work.notes.accepted(nowMs(), "m")
          else if (mark === "first") work.notes.firstUnit()
          else work.end({ n: 1 }, failed)
        }
        work.end({ n: 2 }, failed)
        expect(works).toHaveLength(1)
        const [whole, ...steps] = spans()
        expect(factsOf(whole!).n).toBe(marks.includes("end") ? 1 : 2)
        expect(steps.length).toBeLessThanOrEqual(8 + 3)
        expect(whole!.status).toEqual({ code: failed ? 2 : 0 })
        for (const step of steps)
          expect([step.traceId, step.parentSpanId]).toEqual([whole!.traceId, whole!.spanId])
      },
    ),
    { numRuns: 200 },
  )
})

it("of a job has a trace of its own where its request is unknown", async () => {
  const { meters, spans, works } = traced()
  const kept = newKept(undefined)
  kept.progress = { segments: [], samples: 32_000, language: "en", previousTokens: [] }
  const trace = JobTrace.begin(meters, job, kept)!
  kept.progress = { ...kept.progress, samples: 80_000 }
  trace.ends("turn over")
  trace.over()
  const [turn] = spans()
  expect(turn!.parentSpanId).toBe(undefined)
  expect(factsOf(turn!)).toEqual({
    "edgewise.job_id": job.id,
    "edgewise.outcome": "turn over",
    "edgewise.audio_from_ms": 2_000,
    "edgewise.audio_ms": 3_000,
    "edgewise.model": "listener",
  })
  const asked = request()
  const accepted = inTraceOf(asked, job, meters)
  expect(accepted.options.traceparent).toBe(traceparentOf(asked))
  JobTrace.begin(meters, { ...job, ...accepted }, kept)!.over()
  expect(traceOf(works[1]!.notes)).toMatchObject({
    traceId: traceOf(asked).traceId,
    parentSpanId: traceOf(asked).spanId,
  })
  expect(works[1]!.facts["edgewise.outcome"]).toBe("stopped")
})

it("of a session sums what its places took, each of them once, and keeps the first close code", async () => {
  const { meters, works } = traced()
  const place = (samples: ReadonlyArray<number>, spent: SessionLease["spent"]): SessionLease => {
    const left = [...samples]
    const speaker = { org: "a", windowSeconds: 1, beganAtMs: 0, lastAudioAtMs: 0 }
    return {
      spent,
      speaker,
      isCurrent: () => true,
      begin: () => ({ samples: left.shift() ?? 0 }) as unknown as LiveSession<LiveError>,
    }
  }
  const session = Effect.gen(function* () {
    const trace = (yield* traceSession("realtime transcription", (ended) => ended.hearing()))!
    const first = place([16_000, 8_000], { calls: 3, engineMs: 40 })
    const followed = trace.follow(first)
    followed.begin(0)
    followed.begin(0)
    trace.follow(place([24_000], { calls: 2, engineMs: 5 })).begin(0)
    trace.leave(first)
    trace.leave(first)
    trace.left(new SocketError({ reason: new SocketCloseError({ code: 1006 }) }))
    trace.closed(1000)
  })
  const run = (effect: typeof session) =>
    effect.pipe(
      Effect.scoped,
      Effect.provideService(CurrentNodeMeters, meters),
      Effect.provideService(CurrentRequest, request()),
      Effect.runPromiseExit,
    )
  expect(Exit.isSuccess(await run(session))).toBe(true)
  expect(works[0]).toMatchObject({
    failed: false,
    facts: {
      "edgewise.request_id": "my-request",
      "edgewise.close_code": 1006,
      "edgewise.audio_ms": 3_000,
      "edgewise.engine_ms": 45,
      "edgewise.engine_calls": 5,
    },
  })
  await run(
    Effect.andThen(
      traceSession("live transcription", () => ({})),
      Effect.die("broken"),
    ),
  )
  await run(
    Effect.andThen(
      traceSession("live transcription", () => ({})),
      Effect.interrupt,
    ),
  )
  expect(works.slice(1).map(({ facts, failed }) => [facts["edgewise.close_code"], failed])).toEqual([
    [1011, true],
    [1001, false],
  ])
  expect(new SessionTrace(workBehind(meters, "completions socket", request())!).generating()).toEqual({
    "edgewise.generations": 0,
    "edgewise.input_tokens": 0,
    "edgewise.output_tokens": 0,
  })
})
