// Children that crash more often than they may, and what their parents do: random trees whose workers crash in random orders until the tree
// is shut down, and single cases. The test moves the clock.
import { Deferred, Effect, Exit, Fiber, Logger, References, Scope } from "effect"
import { TestClock } from "effect/testing"
import fc from "fast-check"
import { expect, it } from "vitest"
import { type ChildSpec, type ChildTerms, startChild } from "#actors/Child.ts"
import { type ChildGivesUp, CurrentParent, lostUnder, readTree, TreeNode } from "#actors/TreeNode.ts"

const intensity = { intensity: 2, periodMs: 1_000, backoffBaseMs: 10, backoffCapMs: 40 }
const terms: ChildTerms = { kind: "worker", restart: "permanent", intensity, shutdownMs: 100 }

type Does = ChildGivesUp["does"]

interface Group {
  readonly does: Does
  readonly children: ReadonlyArray<Group | "worker">
}

const { tree } = fc.letrec<{ tree: Group; child: Group | "worker" }>((tie) => ({
  child: fc.oneof({ maxDepth: 2, withCrossShrink: true }, fc.constant("worker" as const), tie("tree")),
  tree: fc.record({
    does: fc.constantFrom<Does>("goes on", "restarts"),
    children: fc.array(tie("child"), { minLength: 1, maxLength: 3 }),
  }),
}))

/** Records running workers and events; `crash` ends the current incarnation of a worker. */
class Stage {
  readonly running = new Map<string, Deferred.Deferred<never>>()
  readonly events: Array<string> = []
  readonly names: Array<string> = []

  spec(shape: Group | "worker", name: string): ChildSpec<unknown, unknown, never> {
    if (shape === "worker") {
      this.names.push(name)
      return { ...terms, name, run: this.#worker(name) }
    }
    const children = shape.children.map((child, n) => this.spec(child, `${name}.${n}`))
    return {
      ...terms,
      kind: "supervisor",
      shutdownMs: Number.POSITIVE_INFINITY,
      childGivesUp: { does: shape.does, outcome: `it ${shape.does}` },
      name,
      run: (self) =>
        Effect.gen(function* () {
          for (const child of children) {
            const started = yield* startChild(child)
            yield* started.ready
          }
          self.ready()
          return yield* Effect.never
        }),
    }
  }

  readonly #worker =
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

const quiet = Effect.provideService(References.MinimumLogLevel, "None")
const run = <A>(test: Effect.Effect<A, never, Scope.Scope>): Promise<A> =>
  Effect.runPromise(test.pipe(quiet, Effect.scoped, Effect.provide(TestClock.layer())))

/** Names of all workers that the tree shows as running. */
const shown = (node: TreeNode): ReadonlyArray<string> =>
  [...node.children].flatMap((child) =>
    child.kind === "worker" ? (child.state === "running" ? [child.name] : []) : shown(child),
  )

const under = (root: TreeNode) => Effect.provideService(CurrentParent, { node: root, scope: undefined })

/** Crashes a worker until it gives up. */
const exhaust = (stage: Stage, name: string) =>
  Effect.gen(function* () {
    for (let n = 0; n <= intensity.intensity; n++) {
      expect(stage.crash(name)).toBe(true)
      yield* TestClock.adjust(50)
    }
  })

it("holds for every random tree: workers that it shows run, none outlives its parent, what gave up is kept, and it stops in reverse order", async () => {
  let gaveUp = 0
  await fc.assert(
    fc.asyncProperty(
      tree,
      // Without a size, fast-check keeps arrays to about ten elements, and few workers give up.
      fc.array(fc.tuple(fc.nat(20), fc.integer({ min: 0, max: 300 })), { maxLength: 25, size: "max" }),
      (shape, crashes) =>
        run(
          Effect.gen(function* () {
            const stage = new Stage()
            const root = new TreeNode("node", "supervisor", 0)
            const scope = yield* Scope.make()
            const top = yield* startChild(stage.spec(shape, "0")).pipe(Scope.provide(scope), under(root))
            yield* top.ready
            expect([...stage.running.keys()]).toEqual(stage.names)
            for (const [n, pauseMs] of crashes) {
              stage.crash(stage.names[n % stage.names.length]!)
              yield* TestClock.adjust(pauseMs)
              expect([...stage.running.keys()].sort()).toEqual([...shown(root)].sort())
            }
            // The longest back-offs of all levels are over: what does not run has given up, itself or with a parent.
            yield* TestClock.adjust(300)
            const lost = lostUnder(root).map(({ name }) => name)
            gaveUp += lost.length
            const missing = stage.names.filter((name) => !stage.running.has(name))
            expect(
              missing.filter((name) => !lost.some((one) => name === one || name.startsWith(`${one}.`))),
            ).toEqual([])
            const before = stage.events.length
            const order = [...shown(root)]
            const closing = yield* Effect.forkDetach(Scope.close(scope, Exit.void), {
              startImmediately: true,
            })
            yield* TestClock.adjust(0)
            yield* Fiber.join(closing)
            expect([...stage.events.slice(before)].sort()).toEqual(order.map((name) => `stop ${name}`).sort())
            expect([...stage.running]).toEqual([])
            expect(root.children.size).toBe(0)
          }),
        ),
    ),
    { numRuns: 150 },
  )
  expect(gaveUp).toBeGreaterThan(10)
})

it("stops the children of a parent in the reverse order of their start", () =>
  run(
    Effect.gen(function* () {
      const stage = new Stage()
      const parent = yield* startChild(
        stage.spec({ does: "goes on", children: ["worker", "worker", "worker"] }, "0"),
      )
      yield* parent.ready
      stage.events.length = 0
      yield* parent.stop
      expect(stage.events).toEqual(["stop 0.2", "stop 0.1", "stop 0.0"])
    }),
  ))

it("goes on without a child that has given up, and keeps which, when and why", () =>
  run(
    Effect.gen(function* () {
      const stage = new Stage()
      const root = new TreeNode("node", "supervisor", 0)
      const parent = yield* startChild(
        stage.spec({ does: "goes on", children: ["worker", "worker"] }, "0"),
      ).pipe(under(root))
      yield* parent.ready
      yield* exhaust(stage, "0.0")
      expect([...stage.running.keys()]).toEqual(["0.1"])
      expect(parent.node).toMatchObject({ state: "running", restarts: 0 })
      yield* TestClock.adjust(5_000)
      const reading = readTree(root, 5_150, 8).children[0]!
      expect(reading.gaveUp).toEqual([
        {
          name: "0.0",
          restarts: 2,
          reason: "Error: crash",
          outcome: "it goes on",
          recovered: false,
          agoMs: expect.any(Number),
        },
      ])
      expect(reading.gaveUp[0]!.agoMs).toBeGreaterThanOrEqual(5_000)
      expect(lostUnder(root).map(({ path }) => path)).toEqual(["0 › 0.0"])
    }),
  ))

it("restarts with all its children where its specification says so, and gives up itself when that happens too often", () =>
  run(
    Effect.gen(function* () {
      const stage = new Stage()
      const root = new TreeNode("node", "supervisor", 0)
      const parent = yield* startChild(
        stage.spec({ does: "restarts", children: ["worker", "worker"] }, "0"),
      ).pipe(under(root))
      yield* parent.ready
      yield* exhaust(stage, "0.0")
      expect(parent.node).toMatchObject({ state: "running", restarts: 1 })
      expect(stage.events.slice(-4)).toEqual(["stop 0.0", "stop 0.1", "start 0.0", "start 0.1"])
      // It runs again: the tree still says what happened, and nothing is lost.
      expect(parent.node.gaveUp).toMatchObject([{ name: "0.0", recovered: true }])
      expect(lostUnder(root)).toEqual([])
      yield* exhaust(stage, "0.1")
      yield* exhaust(stage, "0.0")
      expect(yield* parent.ended).toMatchObject({ reason: "gave-up", restarts: 2 })
      expect([...stage.running.keys()]).toEqual([])
      expect(lostUnder(root)).toMatchObject([
        { name: "0", reason: expect.stringContaining("0.0 gave up") },
        {},
      ])
    }),
  ))

it("remembers the last eight", () => {
  const node = new TreeNode("node", "supervisor", 0)
  for (let n = 0; n < 12; n++)
    node.childGaveUp({ name: `${n % 10}`, kind: "worker", atMs: n, restarts: 1, reason: "", outcome: "" })
  expect(node.gaveUp.map(({ name }) => name)).toEqual(["4", "5", "6", "7", "8", "9", "0", "1"])
})

it("writes one line with the part, the reason and what follows", async () => {
  const lines: Array<unknown> = []
  const kept = Logger.layer([
    Logger.make(({ fiber, message }) => {
      lines.push([message, fiber.getRef(References.CurrentLogAnnotations)])
    }),
  ])
  await Effect.runPromise(
    Effect.gen(function* () {
      const stage = new Stage()
      const parent = yield* startChild(stage.spec({ does: "goes on", children: ["worker"] }, "0"))
      yield* parent.ready
      yield* exhaust(stage, "0.0")
    }).pipe(Effect.scoped, Effect.provide(TestClock.layer()), Effect.provide(kept)),
  )
  expect(lines.at(-1)).toEqual([
    ["a part of the node has given up"],
    { part: "0.0", under: "0", restarts: 2, why: "Error: crash", outcome: "it goes on" },
  ])
})
