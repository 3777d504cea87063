import { expect, it } from "@effect/vitest"
import { Effect, Exit, Ref, Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { backoffMs, type ChildTerms, type RestartPolicy, startChild, withinPeriod } from "#actors/Child.ts"
import { CurrentParent, readTree, TreeNode } from "#actors/TreeNode.ts"

const policy: RestartPolicy = { intensity: 3, periodMs: 30_000, backoffBaseMs: 100, backoffCapMs: 10_000 }
const terms: ChildTerms = { kind: "worker", restart: "permanent", intensity: policy, shutdownMs: 1_000 }
const quiet = { onRestart: () => Effect.void }

/** A child that runs for `lifeMs` and then crashes, counting its starts. */
const mortal = (starts: Ref.Ref<number>, lifeMs: number, more: Partial<ChildTerms> = {}) =>
  startChild({
    ...terms,
    ...quiet,
    ...more,
    name: "child",
    run: () =>
      Ref.update(starts, (n) => n + 1).pipe(
        Effect.andThen(Effect.sleep(lifeMs)),
        Effect.andThen(Effect.die(new Error("dead"))),
      ),
  })

it.effect("gives up after more restarts than the period allows", () =>
  Effect.gen(function* () {
    const starts = yield* Ref.make(0)
    const child = yield* mortal(starts, 0)
    yield* TestClock.adjust("29 seconds")
    expect(yield* child.ended).toMatchObject({ reason: "gave-up", restarts: 3 })
    expect(yield* Ref.get(starts)).toBe(4)
    expect(child.node).toMatchObject({ restarts: 3, state: "gave up" })
  }),
)

it.effect("keeps restarting a child that crashes more seldom than the period", () =>
  Effect.gen(function* () {
    const starts = yield* Ref.make(0)
    const child = yield* mortal(starts, 15_000)
    yield* TestClock.adjust("10 minutes")
    expect(yield* Ref.get(starts)).toBeGreaterThan(35)
    expect(child.node.state).not.toBe("gave up")
    yield* child.stop
    expect(yield* child.ended).toEqual({ reason: "stopped" })
  }),
)

it.effect(
  "restarts as its specification says: permanent always, transient after a crash, temporary never",
  () =>
    Effect.gen(function* () {
      const crashes = yield* Ref.make(0)
      const temporary = yield* mortal(crashes, 10, { restart: "temporary" })
      yield* TestClock.adjust("29 seconds")
      expect(yield* temporary.ended).toMatchObject({ reason: "crashed" })
      expect(yield* Ref.get(crashes)).toBe(1)

      const runs = yield* Ref.make(0)
      const once = Ref.update(runs, (n) => n + 1)
      const transient = yield* startChild({
        ...terms,
        ...quiet,
        restart: "transient",
        name: "once",
        run: () => once,
      })
      yield* TestClock.adjust("29 seconds")
      expect(yield* transient.ended).toMatchObject({ reason: "finished" })
      expect(yield* Ref.get(runs)).toBe(1)
      yield* startChild({ ...terms, ...quiet, name: "again", run: () => once })
      yield* TestClock.adjust("29 seconds")
      expect(yield* Ref.get(runs)).toBe(1 + 4)
    }),
)

it.effect("does not wait for a child longer than its shutdown time", () =>
  Effect.gen(function* () {
    const root = new TreeNode("node", "supervisor", 0)
    const scope = yield* Scope.make()
    const child = yield* startChild({
      ...terms,
      name: "stuck",
      run: (self) =>
        Effect.andThen(
          Effect.addFinalizer(() => Effect.never),
          Effect.andThen(Effect.sync(self.ready), Effect.never),
        ),
    }).pipe(Scope.provide(scope), Effect.provideService(CurrentParent, { node: root, scope: undefined }))
    yield* child.ready
    const closing = yield* Effect.forkChild(Scope.close(scope, Exit.void), { startImmediately: true })
    yield* TestClock.adjust(999)
    expect(closing.pollUnsafe()).toBeUndefined()
    expect(readTree(root, 1_000, 8).children[0]).toMatchObject({ name: "stuck", state: "stopping" })
    yield* TestClock.adjust(1)
    expect(closing.pollUnsafe()).toBeDefined()
    expect(root.children.size).toBe(0)
  }),
)

it.effect("reads a bounded copy of the tree", () =>
  Effect.gen(function* () {
    const root = new TreeNode("node", "supervisor", 0)
    const forever = (name: string) =>
      startChild({
        ...terms,
        name,
        run: (self) => Effect.andThen(Effect.sync(self.ready), Effect.never),
      })
    yield* Effect.forEach(Array.from({ length: 100 }), (_, n) => forever(`child ${n}`)).pipe(
      Effect.provideService(CurrentParent, { node: root, scope: undefined }),
    )
    yield* TestClock.adjust(5_000)
    const reading = readTree(root, 5_000, 3)
    expect(reading).toMatchObject({ name: "node", childCount: 100 })
    expect(reading.children.map(({ ageMs, name, state }) => ({ ageMs, name, state }))).toEqual(
      [0, 1, 2].map((n) => ({ ageMs: 5_000, name: `child ${n}`, state: "running" })),
    )
  }),
)

it("backs off exponentially, within its cap and half a step of jitter", () => {
  fc.assert(
    fc.property(
      fc.integer({ min: 1, max: 40 }),
      fc.double({ min: 0, max: 0.999, noNaN: true }),
      (nth, jitter) => {
        const step = Math.min(policy.backoffCapMs, policy.backoffBaseMs * 2 ** (nth - 1))
        const pause = backoffMs(policy, nth, jitter)
        expect(pause).toBeGreaterThanOrEqual(step / 2)
        expect(pause).toBeLessThanOrEqual(step)
      },
    ),
  )
})

it("counts only what lies inside the period", () => {
  fc.assert(
    fc.property(
      fc.array(fc.nat(100_000)),
      fc.nat(100_000),
      fc.integer({ min: 1, max: 50_000 }),
      (times, now, period) => {
        const sorted = times.filter((at) => at <= now).sort((a, b) => a - b)
        expect(withinPeriod(sorted, now, period)).toEqual(sorted.filter((at) => at > now - period))
      },
    ),
  )
})
