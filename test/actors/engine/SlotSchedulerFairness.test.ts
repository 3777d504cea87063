// One user floods a model with one slot. Another user gets the next slot but one, and a place in the queue although it is full.
import { expect, it } from "@effect/vitest"
import { Deferred, Effect, Fiber } from "effect"
import { EngineStarter } from "#actors/engine/EngineProcess.ts"
import type { RunOptions } from "#actors/engine/EngineRequest.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { GenerateRequest } from "#engines/protocol/Engine.ts"
import { inProcessEngines } from "../../support/engines/InProcessEngine.ts"
import { runText } from "../../support/engines/RunText.ts"
import { fakeWorld, script } from "../../support/nodes/FakeNode.ts"

const requestOf = (tokens: number): GenerateRequest => ({
  prompt: { text: script({ tokens, tokenMs: 1 }) },
  maxTokens: 100_000,
  sampling: { temperature: 0, topP: 1, topK: 0, frequencyPenalty: 0, presencePenalty: 0, seed: 1 },
  stop: [],
})

it.live("serves other requests between two windows of a file, also those that arrive during a window", () =>
  Effect.gen(function* () {
    const registry = yield* ModelRegistry
    const order: Array<string> = []
    const window = (user: string, options: RunOptions) =>
      runText(
        registry,
        "a",
        requestOf(3),
        { started: () => void order.push(user), take: () => {} },
        { user, ...options },
      )
    const began = yield* Deferred.make<void>()
    const file = (user: string, windows: number) =>
      Effect.gen(function* () {
        for (let n = 0; n < windows; n++) {
          if (n === 2) Deferred.doneUnsafe(began, Effect.void)
          yield* window(user, { continues: n > 0 })
        }
      })
    // Three files and one slot: the queue holds two, and only what was not admitted before counts in it.
    const files = yield* Effect.forEach(["x", "x", "y"], (user) =>
      Effect.forkChild(file(user, 12), { startImmediately: true }),
    )
    yield* Deferred.await(began)
    const before = order.length
    const [clip, live] = yield* Effect.all(
      [window("b", {}), window("live", { urgency: "live" })].map((run) =>
        Effect.forkChild(run, { startImmediately: true }),
      ),
    )
    yield* Fiber.join(live!)
    yield* Fiber.join(clip!)
    // The window under way, and at most one more of each user that was in the queue before.
    expect(order.indexOf("live") - before).toBeLessThanOrEqual(1)
    expect(order.indexOf("b") - before).toBeLessThanOrEqual(4)
    yield* Effect.forEach(files, (fiber) => Fiber.join(fiber))
    expect(order.filter((user) => user === "x")).toHaveLength(24)
  }).pipe(
    Effect.provide(fakeWorld({ models: [{ id: "a", options: { slots: 1 }, runtime: { waitingLine: 2 } }] })),
    Effect.provideService(EngineStarter, inProcessEngines().start),
  ),
)

it.live("serves every user in rotation; the flooding user keeps what is left of the queue", () =>
  Effect.gen(function* () {
    const registry = yield* ModelRegistry
    const order: Array<string> = []
    const first = yield* Deferred.make<void>()
    const ask = (user: string, tokens: number) => {
      const listener = {
        started: () => {
          order.push(user)
          Deferred.doneUnsafe(first, Effect.void)
        },
        take: () => {},
      }
      return Effect.forkChild(runText(registry, "a", requestOf(tokens), listener, { user }), {
        startImmediately: true,
      })
    }
    const running = yield* ask("flood", 1_000_000)
    yield* Deferred.await(first)
    const flood = yield* Effect.forEach([1, 2, 3, 4], () => ask("flood", 2))
    const refused = yield* Effect.flip(Fiber.join(yield* ask("flood", 2)))
    expect(refused).toMatchObject({ _tag: "AtCapacity", retryAfterMs: expect.any(Number) })

    const others = [yield* ask("b", 2), yield* ask("c", 2)]
    // They have displaced the two newest requests of the flood.
    const displaced = yield* Effect.forEach(flood.slice(2), (fiber) => Effect.flip(Fiber.join(fiber)))
    expect(displaced.map(({ _tag }) => _tag)).toEqual(["AtCapacity", "AtCapacity"])
    yield* Fiber.interrupt(running)
    yield* Effect.forEach([...flood.slice(0, 2), ...others], (fiber) => Fiber.join(fiber))
    expect(order).toEqual(["flood", "flood", "b", "c", "flood"])
    expect(registry.find("a")!.host!.gauges()).toMatchObject({ open: 0, waiting: 0 })
  }).pipe(
    Effect.provide(fakeWorld({ models: [{ id: "a", options: { slots: 1 }, runtime: { waitingLine: 4 } }] })),
    Effect.provideService(EngineStarter, inProcessEngines().start),
  ),
)
