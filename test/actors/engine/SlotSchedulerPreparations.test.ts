// Requests whose schemas an engine compiles before they take a slot: in which order others pass them, and what becomes of them when
// they are displaced, cancelled or refused, and when their engine crashes. The test plays the engine.
import { expect, it } from "@effect/vitest"
import { Effect, Exit, Fiber } from "effect"
import { ModelMeters } from "#actors/engine/ModelMeters.ts"
import { SlotScheduler } from "#actors/engine/SlotScheduler.ts"
import type { GenerateRequest } from "#engines/protocol/Engine.ts"
import type { ToEngine } from "#engines/protocol/EngineProtocol.ts"
import { fakeDeployment } from "../../support/nodes/FakeNode.ts"

const plain: GenerateRequest = {
  prompt: { text: "a" },
  maxTokens: 10,
  sampling: { temperature: 0, topP: 1, topK: 0, frequencyPenalty: 0, presencePenalty: 0, seed: 1 },
  stop: [],
}
const schema: GenerateRequest = { ...plain, format: { kind: "schema", schema: {}, strict: true } }
const end = { finishReason: "stop", promptTokens: 1, completionTokens: 1 } as const

const stage = (slots: number, waitingLine = 64) => {
  const sent: Array<ToEngine<"text">> = []
  const meters = new ModelMeters()
  const scheduler = new SlotScheduler({
    kind: "text",
    entry: fakeDeployment({ id: "a", runtime: { waitingLine } }).entry,
    meters,
    holdsBackground: () => false,
    send: (message) => void sent.push(message),
  })
  scheduler.begin(slots, 0, true)
  const idsOf = (type: string) =>
    sent.flatMap((message) => (message.type === type && "id" in message ? [message.id] : []))
  return {
    scheduler,
    meters,
    /** Ids of all preparations, and of all requests, that were sent. */
    preparations: () => idsOf("prepare"),
    begun: () => sent.flatMap((message) => (message.type === "generate" ? [message] : [])),
    discarded: () => idsOf("discard"),
    owners: () => sent.flatMap((message) => (message.type === "prepare" ? [message.owner] : [])),
    run: (user: string, request: GenerateRequest) =>
      Effect.forkChild(
        scheduler.run(
          request,
          { started: () => {}, take: () => {} },
          { user, organization: `org of ${user}` },
        ),
        { startImmediately: true },
      ),
    prepared: (...ids: ReadonlyArray<number>) =>
      scheduler.onStep({ type: "step", prepared: ids.map((id) => ({ id })) }, 0),
    ends: (id: number) => scheduler.onStep({ type: "step", ended: [{ id, end }] }, 0),
  }
}

it.effect("a plain chat takes the only slot at once while a user's schemas are compiled", () =>
  Effect.gen(function* () {
    const { begun, ends, owners, preparations, prepared, run } = stage(1)
    for (let count = 0; count < 20; count++) yield* run("costly", schema)
    const other = yield* run("other", schema)
    expect(preparations()).toHaveLength(21)
    expect(owners().at(-1)).toEqual({ user: "other", organization: "org of other" })
    expect(begun()).toHaveLength(0)
    const chat = yield* run("chat", plain)
    expect(begun()).toHaveLength(1)
    // The other user's schema is compiled before most of the first user's: it gets the next slot.
    const [first, ...more] = preparations()
    prepared(preparations().at(-1)!)
    ends(begun()[0]!.id)
    expect(yield* Fiber.join(chat)).toEqual(end)
    expect(begun()[1]).toMatchObject({ request: schema, prepared: preparations().at(-1)! })
    ends(begun()[1]!.id)
    expect(yield* Fiber.join(other)).toEqual(end)
    prepared(first!, more[0]!)
    expect(begun()).toHaveLength(3)
  }),
)

it.effect("a preparation that is refused ends its request alone", () =>
  Effect.gen(function* () {
    const { begun, meters, preparations, run, scheduler } = stage(1)
    const [costly, limited] = [yield* run("a", schema), yield* run("a", schema)]
    const [first, second] = preparations()
    const invalid = { reason: "InvalidInput", field: "format", detail: "takes too long" } as const
    const later = { reason: "Limited", field: "format", detail: "is new", retryAfterMs: 7_000 } as const
    scheduler.onStep(
      {
        type: "step",
        prepared: [
          { id: first!, error: invalid },
          { id: second!, error: later },
        ],
      },
      0,
    )
    expect(yield* Effect.flip(Fiber.join(costly))).toMatchObject({ _tag: "InvalidRequest", field: "format" })
    expect(yield* Effect.flip(Fiber.join(limited))).toMatchObject({
      _tag: "RateLimited",
      retryAfterMs: 7_000,
      problem: "is new",
    })
    expect(begun()).toHaveLength(0)
    expect(scheduler.gauges()).toMatchObject({ open: 0, waiting: 0 })
    expect(meters.outcomes.failed).toBe(2)
  }),
)

it.effect("requests that leave or are displaced are discarded by the engine", () =>
  Effect.gen(function* () {
    const { discarded, preparations, run, scheduler } = stage(1, 2)
    const left = yield* run("a", schema)
    const displaced = yield* run("a", schema)
    yield* run("b", schema)
    expect(discarded()).toEqual([preparations()[1]])
    expect(yield* Effect.flip(Fiber.join(displaced))).toMatchObject({ _tag: "AtCapacity" })
    yield* Fiber.interrupt(left)
    expect(discarded()).toEqual([preparations()[1], preparations()[0]])
    expect(scheduler.gauges().waiting).toBe(1)
  }),
)

it.effect("what an engine was compiling when it crashed fails; what it had compiled waits for the next", () =>
  Effect.gen(function* () {
    const { begun, ends, preparations, prepared, run, scheduler } = stage(1)
    const chat = yield* run("chat", plain)
    const ready = yield* run("a", schema)
    prepared(preparations()[0]!)
    const compiling = yield* run("b", schema)
    scheduler.crash("crashed", "", true)
    expect(Exit.isFailure(yield* Fiber.await(chat))).toBe(true)
    expect(yield* Effect.flip(Fiber.join(compiling))).toMatchObject({ _tag: "EngineFailed" })
    // Another that arrives while there is no engine.
    const late = yield* run("c", schema)
    expect(preparations()).toHaveLength(2)
    scheduler.begin(2, 0, true)
    scheduler.pump()
    expect(preparations()).toHaveLength(4)
    expect(begun()).toHaveLength(1)
    prepared(...preparations().slice(2))
    expect(begun()).toHaveLength(3)
    for (const { id } of begun().slice(1)) ends(id)
    expect([yield* Fiber.join(ready), yield* Fiber.join(late)]).toEqual([end, end])
  }),
)

it.effect("an engine that prepares nothing gets requests as they are", () =>
  Effect.gen(function* () {
    const { begun, preparations, run, scheduler } = stage(1)
    scheduler.crash("crashed", "", false)
    yield* run("a", schema)
    scheduler.begin(2, 0, false)
    scheduler.pump()
    yield* run("a", schema)
    expect(preparations()).toHaveLength(0)
    expect(begun().map(({ prepared }) => prepared)).toEqual([undefined, undefined])
  }),
)
