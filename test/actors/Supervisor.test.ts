// Random trees of supervisors and workers whose workers crash in random orders, until the tree is shut down. The test moves the clock.
import { Deferred, Effect, Exit, Fiber, Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { expect, it } from "vitest"
import { type ChildSpec, type ChildTerms, startChild } from "#actors/Child.ts"
import { type Strategy, supervisor } from "#actors/Supervisor.ts"
import { CurrentParent, TreeNode } from "#actors/TreeNode.ts"

const intensity = { intensity: 2, periodMs: 1_000, backoffBaseMs: 10, backoffCapMs: 40 }
const terms: ChildTerms = { kind: "worker", restart: "permanent", intensity, shutdownMs: 100 }

interface Shape {
  readonly strategy: Strategy
  readonly children: ReadonlyArray<Shape | "worker">
}

const { tree } = fc.letrec<{ tree: Shape; child: Shape | "worker" }>((tie) => ({
  child: fc.oneof({ maxDepth: 2, withCrossShrink: true }, fc.constant("worker" as const), tie("tree")),
  tree: fc.record({
    strategy: fc.constantFrom<Strategy>("one-for-one", "rest-for-one"),
    children: fc.array(tie("child"), { minLength: 1, maxLength: 3 }),
  }),
}))

/** Records running workers and events; `crash` ends the current incarnation of a worker. */
class Stage {
  readonly running = new Map<string, Deferred.Deferred<never>>()
  readonly events: Array<string> = []
  readonly names: Array<string> = []

  spec(shape: Shape | "worker", name: string): ChildSpec<unknown, unknown, never> {
    if (shape === "worker") {
      this.names.push(name)
      return { ...terms, name, onRestart: () => Effect.void, run: this.worker(name) }
    }
    return {
      ...supervisor<never>({
        name,
        strategy: shape.strategy,
        terms: { ...terms, kind: "supervisor", shutdownMs: Number.POSITIVE_INFINITY },
        children: shape.children.map((child, n) => this.spec(child, `${name}.${n}`)),
      }),
      onRestart: () => Effect.void,
    }
  }

  private readonly worker =
    (name: string): ChildSpec<unknown, unknown, never>["run"] =>
    (self) =>
      Effect.gen({ self: this }, function* () {
        const crash = Deferred.makeUnsafe<never>()
        expect(this.running.has(name)).toBe(false)
        this.running.set(name, crash)
        this.events.push(`start ${name}`)
        yield* Effect.addFinalizer(() =>
          Effect.sync(() => {
            this.running.delete(name)
            this.events.push(`stop ${name}`)
          }),
        )
        self.ready()
        return yield* Deferred.await(crash)
      })

  crash(name: string): boolean {
    const crash = this.running.get(name)
    return crash !== undefined && Deferred.doneUnsafe(crash, Exit.die(new Error("crash")))
  }
}

const run = <A>(test: Effect.Effect<A, never, Scope.Scope>): Promise<A> =>
  Effect.runPromise(test.pipe(Effect.scoped, Effect.provide(TestClock.layer())))

/** Names of all workers that the tree shows as running. */
const shown = (node: TreeNode): ReadonlyArray<string> =>
  [...node.children].flatMap((child) =>
    child.kind === "worker" ? (child.state === "running" ? [child.name] : []) : shown(child),
  )

it("holds for every random tree: workers that it shows run, none outlives its parent, and it stops in reverse order", async () => {
  await fc.assert(
    fc.asyncProperty(
      tree,
      fc.array(fc.tuple(fc.nat(20), fc.integer({ min: 0, max: 300 })), { maxLength: 25 }),
      (shape, crashes) =>
        run(
          Effect.gen(function* () {
            const stage = new Stage()
            const root = new TreeNode("node", "supervisor", 0)
            const scope = yield* Scope.make()
            const top = yield* startChild(stage.spec(shape, "0")).pipe(
              Scope.provide(scope),
              Effect.provideService(CurrentParent, { node: root, scope: undefined }),
            )
            yield* top.ready
            expect([...stage.running.keys()]).toEqual(stage.names)
            for (const [n, pauseMs] of crashes) {
              stage.crash(stage.names[n % stage.names.length]!)
              yield* TestClock.adjust(pauseMs)
              expect([...stage.running.keys()].sort()).toEqual([...shown(root)].sort())
            }
            // The longest back-offs of all levels are over.
            yield* TestClock.adjust(200)
            const gaveUp = top.node.state === "gave up"
            expect([...stage.running.keys()].sort()).toEqual(gaveUp ? [] : [...stage.names].sort())
            const before = stage.events.length
            const order = [...shown(root)]
            const closing = yield* Effect.forkDetach(Scope.close(scope, Exit.void), {
              startImmediately: true,
            })
            yield* TestClock.adjust(0)
            yield* Fiber.join(closing)
            expect(stage.events.slice(before)).toEqual(order.reverse().map((name) => `stop ${name}`))
            expect([...stage.running]).toEqual([])
            expect(root.children.size).toBe(0)
          }),
        ),
    ),
    { numRuns: 150 },
  )
})

const group = (strategy: Strategy, names: ReadonlyArray<string>, stage: Stage) =>
  startChild({
    ...supervisor<never>({
      name: "group",
      strategy,
      terms,
      children: names.map((name) => stage.spec("worker", name)),
    }),
    onRestart: () => Effect.void,
  })

it("restarts one child alone, or with those that were started after it", () =>
  run(
    Effect.gen(function* () {
      for (const strategy of ["one-for-one", "rest-for-one"] as const) {
        const stage = new Stage()
        const child = yield* group(strategy, ["a", "b", "c"], stage)
        yield* child.ready
        stage.events.length = 0
        stage.crash("b")
        yield* TestClock.adjust(20)
        expect(stage.events).toEqual(
          strategy === "one-for-one" ? ["stop b", "start b"] : ["stop c", "stop b", "start b", "start c"],
        )
        const { children } = child.node
        expect([...children].map(({ name, restarts }) => [name, restarts]).sort()).toEqual([
          ["a", 0],
          ["b", 1],
          ["c", 0],
        ])
        yield* child.stop
      }
    }),
  ))

it("ends when a child has crashed too often, and is restarted by its own supervisor", () =>
  run(
    Effect.gen(function* () {
      const stage = new Stage()
      const child = yield* group("one-for-one", ["a", "b"], stage)
      yield* child.ready
      for (let n = 0; n < 3; n++) {
        expect(stage.crash("a")).toBe(true)
        yield* TestClock.adjust(50)
      }
      expect(child.node.restarts).toBe(1)
      expect([...stage.running.keys()]).toEqual(["a", "b"])
      for (let n = 0; n < 6; n++) {
        stage.crash("b")
        yield* TestClock.adjust(50)
      }
      expect(yield* child.ended).toMatchObject({ reason: "gave-up", restarts: 2 })
      expect([...stage.running.keys()]).toEqual([])
    }),
  ))
