// A supervisor: a list of child specifications, started in order, stopped in the reverse order, and what a crash of one means
// for the others. It is a child itself, so supervisors nest into a tree. Children that are not known beforehand (models, live
// sessions, jobs) are started with `startChild` in a supervisor that is `open`; each is then restarted by itself.
import { Deferred, Effect, Exit, Fiber, Schema, type Scope } from "effect"
import { type ChildSpec, type ChildTerms, type Self, startChild } from "./Child.ts"
import { CurrentParent, type TreeNode } from "./TreeNode.ts"

/**
 * `one-for-one`: a child that crashes is restarted alone. `rest-for-one`: those after it in the list, which were started on
 * top of it, are stopped before and started again after it.
 */
export type Strategy = "one-for-one" | "rest-for-one"

/** A child has crashed more often than its specification allows. Its supervisor ends with this, and is restarted itself. */
export class RestartIntensityExceeded extends Schema.TaggedError<RestartIntensityExceeded>()(
  "RestartIntensityExceeded",
  { child: Schema.String, restarts: Schema.Int },
) {}

export interface SupervisorSpec<R> {
  readonly name: string
  readonly terms: ChildTerms
  readonly strategy: Strategy
  readonly children: ReadonlyArray<ChildSpec<unknown, unknown, R>>
}

type Any<R> = ChildSpec<unknown, unknown, R>
type Escalation = Deferred.Deferred<never, RestartIntensityExceeded>

/** Starts one child, waits until it is ready, and passes on that it has been given up. */
const startOne = <R>(spec: Any<R>, escalation: Escalation) =>
  Effect.gen(function* () {
    const child = yield* startChild(spec)
    yield* Effect.forkScoped(
      Effect.map(child.ended, (end) => {
        if (end.reason !== "gave-up") return
        const error = new RestartIntensityExceeded({ child: spec.name, restarts: end.restarts })
        Deferred.doneUnsafe(escalation, Exit.fail(error))
      }),
    )
    yield* child.ready
  })

/**
 * The first child with all that follow it inside of its incarnation: whatever restarts it, they are stopped before and
 * started again after it, which is what rest-for-one means.
 */
const nested = <R>(
  [first, ...rest]: ReadonlyArray<Any<R>>,
  siblings: TreeNode,
  escalation: Escalation,
  allReady: Deferred.Deferred<void>,
): Any<R> | undefined => {
  if (first === undefined) return undefined
  const run = (self: Self): Effect.Effect<unknown, unknown, R | Scope.Scope> =>
    Effect.gen(function* () {
      const isReady = Deferred.makeUnsafe<void>()
      const own = yield* Effect.forkScoped(
        first.run({
          node: self.node,
          ready: () => {
            self.ready()
            Deferred.doneUnsafe(isReady, Exit.void)
          },
        }),
      )
      const following = nested(rest, siblings, escalation, allReady)
      const others = Effect.gen(function* () {
        yield* Deferred.await(isReady)
        if (following === undefined) Deferred.doneUnsafe(allReady, Exit.void)
        else {
          const { scope } = yield* CurrentParent
          yield* Effect.provideService(startOne(following, escalation), CurrentParent, {
            node: siblings,
            scope,
          })
        }
        return yield* Effect.never
      })
      // An end that is no crash does not concern the others.
      const end = Effect.flatMap(Fiber.await(own), (exit) => {
        Deferred.doneUnsafe(isReady, Exit.void)
        const isCrash = Exit.isSuccess(exit) ? first.restart === "permanent" : first.restart !== "temporary"
        if (isCrash) return exit
        self.node.state = "ended"
        return Effect.never
      })
      return yield* Effect.raceFirst(end, others)
    })
  return { ...first, run }
}

/** A supervisor as the child of another one. */
export const supervisor = <R>({
  children,
  name,
  strategy,
  terms,
}: SupervisorSpec<R>): ChildSpec<never, RestartIntensityExceeded, R> => ({
  ...terms,
  name,
  run: (self) =>
    Effect.gen(function* () {
      const escalation: Escalation = Deferred.makeUnsafe()
      if (strategy === "one-for-one") for (const spec of children) yield* startOne(spec, escalation)
      else {
        const allReady = Deferred.makeUnsafe<void>()
        const chain = nested(children, self.node, escalation, allReady)
        if (chain !== undefined) {
          yield* startOne(chain, escalation)
          yield* Effect.raceFirst(Deferred.await(allReady), Deferred.await(escalation))
        }
      }
      self.ready()
      return yield* Deferred.await(escalation)
    }),
})
