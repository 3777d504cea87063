// The host with real engine processes and threads that run the fake engine: crashes, hangs, cancellation, waiting requests.
import { describe, expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber, Schedule } from "effect"
import * as EngineProcess from "#actors/engine/EngineProcess.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { GenerateRequest } from "#engines/protocol/Engine.ts"
import type { Flow } from "#engines/protocol/Reader.ts"
import { runText } from "../../support/engines/RunText.ts"
import { inLong } from "../../support/groups/Runs.ts"
import { fakeRegistry, script } from "../../support/nodes/FakeNode.ts"

const requestOf = (steps: Readonly<Record<string, unknown>>): GenerateRequest => ({
  prompt: { text: script(steps) },
  maxTokens: 100_000,
  sampling: { temperature: 0, topP: 1, topK: 0, frequencyPenalty: 0, presencePenalty: 0, seed: 1 },
  stop: [],
})

interface Seen {
  text: string
  flow: Flow | undefined
}

interface Hooks {
  readonly onStart?: () => void
  /** `count`: units so far, with this one. */
  readonly onUnit?: (seen: Seen, count: number) => void
}

/** Runs a script on `fake` and records its units; `received` completes with the first one. */
const run = (
  steps: Readonly<Record<string, unknown>>,
  { onStart = () => {}, onUnit = () => {} }: Hooks = {},
) =>
  Effect.gen(function* () {
    const registry = yield* ModelRegistry
    const seen: Seen = { text: "", flow: undefined }
    const received = yield* Deferred.make<void>()
    let count = 0
    const fiber = yield* Effect.forkChild(
      runText(registry, "fake", requestOf(steps), {
        started: (_, flow) => {
          seen.flow = flow
          onStart()
        },
        take: ({ text }) => {
          seen.text += text
          onUnit(seen, ++count)
          if (count === 1) Deferred.doneUnsafe(received, Effect.void)
        },
      }),
      { startImmediately: true },
    )
    return { fiber, seen, received: Deferred.await(received), count: () => count }
  })

const gauges = Effect.map(ModelRegistry, (registry) => registry.find("fake")!.host!.gauges())

/** Waits until the gauges satisfy `ok`; the test's own timeout is the bound. */
const until = (ok: (now: Effect.Success<typeof gauges>) => boolean) =>
  gauges.pipe(Effect.repeat({ until: ok, schedule: Schedule.spaced(2) }))

const endless = { tokens: 1_000_000, tokenMs: 2 }

for (const isolation of ["process", "thread"] as const) {
  describe(`in a ${isolation}`, () => {
    it.live("runs requests concurrently and gives each its own text", () =>
      Effect.gen(function* () {
        const runs = yield* Effect.forEach(["a", "b", "c", "d"], (text) => run({ tokens: 50, text }))
        const ends = yield* Effect.forEach(runs, ({ fiber }) => Fiber.join(fiber))
        expect(runs.map(({ seen }) => seen.text)).toEqual(["a", "b", "c", "d"].map((text) => text.repeat(50)))
        expect(ends.map(({ completionTokens }) => completionTokens)).toEqual([50, 50, 50, 50])
        expect((yield* gauges).open).toBe(0)
      }).pipe(Effect.provide(fakeRegistry({ runtime: { isolation } }))),
    )

    it.live("frees the slot of an interrupted request, and of no other", () =>
      Effect.gen(function* () {
        const registry = yield* ModelRegistry
        const gone = yield* run(endless)
        let isCancelled = false
        let stepsUntilFree = 0
        const stays = yield* run(endless, {
          onUnit: () => {
            if (isCancelled && registry.find("fake")!.host!.gauges().open === 3) stepsUntilFree++
          },
        })
        yield* gone.received
        yield* stays.received
        yield* Fiber.interrupt(gone.fiber)
        // Messages are read and sent in order: when this one begins, the engine has read the cancelling, however slow the gateway is.
        const later = yield* run(endless, {
          onStart: () => {
            isCancelled = true
          },
        })
        yield* later.received
        yield* until(({ open }) => open === 2)
        isCancelled = false
        const before = gone.seen.text
        yield* Fiber.join((yield* run({ tokens: 20, tokenMs: 2 })).fiber)
        expect(gone.seen.text).toBe(before)
        // None or one as a rule.
        expect(stepsUntilFree).toBeLessThan(10)
        yield* Effect.forEach([stays, later], ({ fiber }) => Fiber.interrupt(fiber))
        yield* until(({ open }) => open === 0)
      }).pipe(Effect.provide(fakeRegistry({ runtime: { isolation } }))),
    )

    it.live("stops producing while its reader is paused, and continues where it stopped", () =>
      Effect.gen(function* () {
        const letters = [..."abcdefghijklmnopqrstuvwxyz"]
        // Far more than an engine sends without an acknowledgement (`mostUnacknowledged` in OpenRequests).
        const tokens = 5_000
        const paused = yield* Deferred.make<void>()
        const { count, fiber, seen } = yield* run(
          { tokens, text: letters },
          {
            onUnit: ({ flow }, units) => {
              if (units !== 20) return
              flow!.pause()
              Deferred.doneUnsafe(paused, Effect.void)
            },
          },
        )
        yield* Deferred.await(paused)
        // The engine reads the pause before this request, and sends all units before the pause before those of the request.
        yield* Fiber.join((yield* run({ tokens: 1 })).fiber)
        const atPause = count()
        yield* Fiber.join((yield* run({ tokens: 50, tokenMs: 1 })).fiber)
        expect(count()).toBe(atPause)
        expect(atPause).toBeLessThan(tokens)
        seen.flow!.resume()
        yield* Fiber.join(fiber)
        expect(seen.text).toBe(Array.from({ length: tokens }, (_, i) => letters[i % 26]).join(""))
      }).pipe(Effect.provide(fakeRegistry({ runtime: { isolation } }))),
    )
  })
}

it.live("fails every open request when its process is killed, and serves the next after a restart", () =>
  Effect.gen(function* () {
    const runs = yield* Effect.forEach([1, 2, 3, 4, 5, 6, 7, 8], () => run(endless))
    yield* Effect.forEach(runs, ({ received }) => received)
    const { pid } = yield* gauges
    process.kill(pid!, "SIGKILL")
    const errors = yield* Effect.forEach(runs, ({ fiber }) => Effect.flip(Fiber.join(fiber)))
    for (const error of errors) expect(error).toMatchObject({ _tag: "EngineFailed", reason: "crashed" })
    // The next request waits in the queue until the engine runs again.
    const next = yield* run({ tokens: 3, text: "x" })
    yield* Fiber.join(next.fiber)
    expect(next.seen.text).toBe("xxx")
    const after = yield* gauges
    expect(after).toMatchObject({ open: 0, waiting: 0, restarts: 1 })
    expect(after.pid).not.toBe(pid)
  }).pipe(Effect.provide(fakeRegistry())),
)

it.live("kills and replaces an engine that stops answering", () =>
  Effect.gen(function* () {
    const bystander = yield* run(endless)
    // An engine that gets no processor for that long counts as hung before.
    yield* Effect.raceFirst(bystander.received, Fiber.await(bystander.fiber))
    const hung = yield* run({ tokens: 10, hangAt: 5, tokenMs: 1 })
    expect(yield* Effect.flip(Fiber.join(hung.fiber))).toMatchObject({ _tag: "EngineFailed", reason: "hung" })
    expect(yield* Effect.flip(Fiber.join(bystander.fiber))).toMatchObject({ reason: "hung" })
    const next = yield* run({ tokens: 2, text: "y" })
    yield* Fiber.join(next.fiber)
    expect(next.seen.text).toBe("yy")
  }).pipe(Effect.provide(fakeRegistry({ runtime: { hangDeadlineMs: 2_000 } }))),
)

it.live("gives an engine the time limit of a load while it opens files, and not more", () =>
  Effect.gen(function* () {
    const opening = yield* run({ tokens: 2, text: "z", openingMs: 5_000 })
    yield* Fiber.join(opening.fiber)
    expect(opening.seen.text).toBe("zz")
    expect(yield* gauges).toMatchObject({ restarts: 0 })
    const hung = yield* run({ tokens: 2, hangAt: 1 })
    expect(yield* Effect.flip(Fiber.join(hung.fiber))).toMatchObject({ reason: "hung" })
  }).pipe(Effect.provide(fakeRegistry({ runtime: { hangDeadlineMs: 2_000 } }))),
)

it.live(
  "a call that computes for several deadlines is no hang, and an endless one is",
  () =>
    Effect.gen(function* () {
      const long = yield* run({ tokens: 2, text: "c", computeMs: 2_000 })
      yield* Fiber.join(long.fiber)
      expect(long.seen.text).toBe("cc")
      expect(yield* gauges).toMatchObject({ restarts: 0 })
      const endless = yield* run({ tokens: 2, computeMs: 600_000 })
      expect(yield* Effect.flip(Fiber.join(endless.fiber))).toMatchObject({ reason: "hung" })
    }).pipe(Effect.provide(fakeRegistry({ runtime: { hangDeadlineMs: 800 } }))),
  inLong,
)

it.live("lets requests wait for a slot in order, and refuses one more than the queue holds", () =>
  Effect.gen(function* () {
    const first = yield* run(endless)
    yield* first.received
    const second = yield* run({ tokens: 1, text: "2" })
    const third = yield* run({ tokens: 1, text: "3" })
    expect(yield* gauges).toMatchObject({ open: 1, waiting: 2, slots: 1 })
    const refused = yield* run({ tokens: 1 })
    const error = yield* Effect.flip(Fiber.join(refused.fiber))
    expect(error).toMatchObject({ _tag: "AtCapacity", model: "fake" })
    // A request that leaves the queue frees its place and starts no other.
    yield* Fiber.interrupt(second.fiber)
    expect(yield* gauges).toMatchObject({ open: 1, waiting: 1 })
    yield* Fiber.interrupt(first.fiber)
    yield* Fiber.join(third.fiber)
    expect([second.seen.text, third.seen.text]).toEqual(["", "3"])
    expect(yield* gauges).toMatchObject({ open: 0, waiting: 0 })
  }).pipe(Effect.provide(fakeRegistry({ options: { slots: 1 }, runtime: { waitingLine: 2 } }))),
)

it.live("is in the state failed, and answers at once, when the engine refuses its weights", () =>
  Effect.gen(function* () {
    const registry = yield* ModelRegistry
    const { fiber } = yield* run({ tokens: 1 })
    expect(yield* Effect.flip(Fiber.join(fiber))).toMatchObject({ _tag: "ModelUnavailable" })
    expect(registry.find("fake")).toMatchObject({ status: "failed", lastFailure: "broken weights" })
    const again = yield* run({ tokens: 1 })
    expect(yield* Effect.flip(Fiber.join(again.fiber))).toMatchObject({ _tag: "ModelUnavailable" })
  }).pipe(Effect.provide(fakeRegistry({ options: { loadFailure: "broken weights" } }))),
)

it.live("gives up after the restart intensity, and an operator's load starts over", () =>
  Effect.gen(function* () {
    const registry = yield* ModelRegistry
    for (let crash = 0; crash < 4; crash++) {
      const { fiber } = yield* run({ tokens: 5, crashAt: 1 })
      expect(yield* Effect.flip(Fiber.join(fiber))).toMatchObject({ reason: "crashed" })
    }
    yield* Effect.sync(() => registry.find("fake")!.status).pipe(
      Effect.repeat({ until: (status) => status === "failed", schedule: Schedule.spaced(2) }),
    )
    const refused = yield* run({ tokens: 1 })
    expect(yield* Effect.flip(Fiber.join(refused.fiber))).toMatchObject({ _tag: "ModelUnavailable" })
    yield* registry.model("fake")!.load(false)
    const { fiber, seen } = yield* run({ tokens: 2, text: "z" })
    yield* Fiber.join(fiber)
    expect(seen.text).toBe("zz")
  }).pipe(Effect.provide(fakeRegistry())),
)

it.live("ends the process and its requests when unloaded, and starts none until it is loaded", () =>
  Effect.gen(function* () {
    const registry = yield* ModelRegistry
    const { fiber, received } = yield* run(endless)
    yield* received
    const { pid } = yield* gauges
    const unloading = yield* Effect.forkChild(registry.model("fake")!.unload)
    expect(yield* Effect.flip(Fiber.join(fiber))).toMatchObject({ reason: "unloaded" })
    const unloaded = yield* Fiber.join(unloading)
    expect(unloaded.was).toBe(true)
    expect(unloaded.freedBytes).toBeGreaterThan(1_000_000)
    expect(registry.find("fake")!.timings).toMatchObject({ loads: 1, unloads: 1 })
    expect(() => process.kill(pid!, 0)).toThrow("ESRCH")
    const refused = yield* run({ tokens: 1 })
    expect(yield* Effect.flip(Fiber.join(refused.fiber))).toMatchObject({ _tag: "ModelNotLoaded" })
    yield* registry.model("fake")!.load(false)
    yield* Fiber.join((yield* run({ tokens: 1 })).fiber)
  }).pipe(Effect.provide(fakeRegistry())),
)

it.live("leaves nothing behind: processes end with the registry", () =>
  Effect.gen(function* () {
    const pids = yield* Effect.gen(function* () {
      yield* Fiber.join((yield* run({ tokens: 1 })).fiber)
      return (yield* gauges).pid!
    }).pipe(Effect.provide(fakeRegistry()))
    expect(() => process.kill(pids, 0)).toThrow("ESRCH")
  }),
)

it.live("limits the messages of an engine that a slow gateway has not yet processed", () =>
  Effect.gen(function* () {
    const loaded = yield* Deferred.make<void>()
    let steps = 0
    const engine = yield* EngineProcess.start<"text">({
      isolation: "process",
      environment: {},
      onMessage: ({ type }) => {
        if (type === "loaded") Deferred.doneUnsafe(loaded, Effect.void)
        if (type === "step") steps++
      },
    })
    const spec = { modelId: "fake", adapter: "fake", files: {}, options: {}, threads: 1 }
    engine.send({ type: "load", spec })
    yield* Deferred.await(loaded)
    engine.send({ type: "generate", id: 1, request: requestOf({ tokens: 20_000 }) })
    const sent = (count: number) =>
      Effect.sync(() => steps).pipe(
        Effect.repeat({ until: (now) => now >= count, schedule: Schedule.spaced(2) }),
        // Time for more.
        Effect.andThen(Effect.sleep(100)),
      )
    // `mostUnacknowledged` in OpenRequests.
    yield* sent(256)
    expect(steps).toBe(256)
    engine.send({ type: "ack", steps: 200 })
    yield* sent(456)
    expect(steps).toBe(456)
  }).pipe(Effect.scoped),
)
