// One user sends requests that crash the engine. Other users are served after each restart, the model never fails, and that user
// is refused.
import { expect, it } from "@effect/vitest"
import { Effect, Fiber } from "effect"
import { EngineStarter } from "#actors/engine/EngineProcess.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { GenerateRequest } from "#engines/protocol/Engine.ts"
import { inProcessEngines } from "../../support/engines/InProcessEngine.ts"
import { runText } from "../../support/engines/RunText.ts"
import { fakeWorld, script } from "../../support/nodes/FakeNode.ts"

const requestOf = (steps: Readonly<Record<string, unknown>>): GenerateRequest => ({
  prompt: { text: script(steps) },
  maxTokens: 100_000,
  sampling: { temperature: 0, topP: 1, topK: 0, frequencyPenalty: 0, presencePenalty: 0, seed: 1 },
  stop: [],
})

const world = () => {
  const engines = inProcessEngines()
  return { engines, layer: fakeWorld({ models: [{ id: "a", options: { slots: 4 } }] }) }
}

const ask = (user: string, steps: Readonly<Record<string, unknown>>, onStart: () => void = () => {}) =>
  Effect.flatMap(ModelRegistry, (registry) =>
    runText(registry, "a", requestOf(steps), { started: onStart, take: () => {} }, { user }),
  )

it.live("is refused, and all other users are served by the next engine", () => {
  const { engines, layer } = world()
  /** As soon as the engine has its request. */
  const crash = (user: string) => Effect.flip(ask(user, { tokens: 1_000_000, tokenMs: 1 }, engines.crash))
  return Effect.gen(function* () {
    const registry = yield* ModelRegistry
    yield* ask("honest", { tokens: 2 })
    const ends: Array<string> = []
    for (let n = 0; n < 6; n++) {
      ends.push((yield* crash("attacker"))._tag)
      expect((yield* ask("honest", { tokens: 2 })).completionTokens).toBe(2)
    }
    expect(ends).toEqual([
      "EngineFailed",
      "EngineFailed",
      ...Array.from({ length: 4 }, () => "ModelUnavailable"),
    ])
    expect(registry.find("a")?.status).toBe("loaded")
    const refused = yield* Effect.flip(ask("attacker", { tokens: 1 }))
    expect(refused).toMatchObject({ _tag: "ModelUnavailable" })
    if (refused._tag === "ModelUnavailable") expect(refused.retryAfterMs).toBeGreaterThan(30_000)
  }).pipe(Effect.provide(layer), Effect.provideService(EngineStarter, engines.start))
})

it.live("is not suspected if an operator killed the engine", () => {
  const { engines, layer } = world()
  return Effect.gen(function* () {
    for (let n = 0; n < 3; n++) {
      const killed = ask("honest", { tokens: 1_000_000, tokenMs: 1 }, () => {
        for (const engine of engines.alive) engine.kill()
      })
      expect((yield* Effect.flip(killed))._tag).toBe("EngineFailed")
      expect((yield* ask("honest", { tokens: 2 })).completionTokens).toBe(2)
    }
  }).pipe(Effect.provide(layer), Effect.provideService(EngineStarter, engines.start))
})

it.live(
  "is found among several suspects, which are served one at a time while other users are served as usual",
  () => {
    const { engines, layer } = world()
    return Effect.gen(function* () {
      yield* ask("new", { tokens: 1 })
      const endless = { tokens: 1_000_000, tokenMs: 1 }
      const suspects: Array<string> = []
      const together = yield* Effect.forEach(["attacker", "honest"], (user) =>
        Effect.forkChild(
          ask(user, endless, () => void suspects.push(user)),
          { startImmediately: true },
        ),
      )
      while (suspects.length < 2) yield* Effect.sleep(5)
      engines.crash()
      for (const fiber of together) expect((yield* Effect.flip(Fiber.join(fiber)))._tag).toBe("EngineFailed")

      const started: Array<string> = []
      const begin = (user: string) =>
        Effect.forkChild(
          ask(user, endless, () => void started.push(user)),
          { startImmediately: true },
        )
      const second = yield* begin("attacker")
      const honest = yield* begin("honest")
      const fresh = yield* begin("new")
      while (started.length < 2) yield* Effect.sleep(5)
      yield* Effect.sleep(30)
      expect(started.toSorted()).toEqual(["attacker", "new"])
      engines.crash()
      expect((yield* Effect.flip(Fiber.join(second)))._tag).toBe("EngineFailed")
      expect((yield* Effect.flip(Fiber.join(fresh)))._tag).toBe("EngineFailed")
      // It waited for the other suspect, which is now refused.
      while (!started.includes("honest")) yield* Effect.sleep(5)
      expect((yield* Effect.flip(ask("attacker", { tokens: 1 })))._tag).toBe("ModelUnavailable")
      yield* Fiber.interrupt(honest)
    }).pipe(Effect.provide(layer), Effect.provideService(EngineStarter, engines.start))
  },
)
