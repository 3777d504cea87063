// Runs one child of a supervisor: starts it, restarts it when it crashes, stops it within its time, tells watchers of its end.
// What to run and how often to restart it is data, a ChildSpec. One restart policy belongs to one child, because most of
// the node's children share nothing: a model that crashes in a loop must not use up the restarts of another.
// A child crashes when its `run` fails or dies. Everything it acquires belongs to the Scope of that incarnation, also its own
// children, so a restart begins with nothing left over, and no child outlives its parent.
import { Cause, Deferred, Effect, Exit, Fiber, Random, Schema, Scope } from "effect"
import { exceptionReason } from "#domain/process/PlainLine.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { type ChildGivesUp, CurrentParent, type NodeKind, type Parent, TreeNode } from "./TreeNode.ts"

/** At most `intensity` restarts inside a period that slides, with growing pauses. Schedules cannot express that. */
export interface RestartPolicy {
  /** Restarts allowed inside `periodMs`; 0 means the first failure is final. */
  readonly intensity: number
  readonly periodMs: number
  /** First pause; doubles with every restart still inside the period. */
  readonly backoffBaseMs: number
  readonly backoffCapMs: number
}

/** What never changes of a kind of child. The node's are in Specifications.ts. */
export interface ChildTerms {
  readonly kind: NodeKind
  /**
   * `permanent`: restarted however it ends. `transient`: restarted when it crashes. `temporary`: never restarted.
   */
  readonly restart: "permanent" | "transient" | "temporary"
  readonly intensity: RestartPolicy
  /** What it does when a child of it has given up. Absent: none of its children is restarted, or it has none. */
  readonly childGivesUp?: ChildGivesUp
  /** How long it may take to stop. After that its supervisor goes on without it and logs a warning. Infinity waits. */
  readonly shutdownMs: number
}

/** What an incarnation may tell its supervisor. */
export interface Self {
  readonly node: TreeNode
  /** To be called when it does its work; until then it is `starting`. */
  readonly ready: () => void
}

export interface ChildSpec<out A, out E, out R> extends ChildTerms {
  readonly name: string
  /** One incarnation, from its start to its end. */
  readonly run: (self: Self) => Effect.Effect<A, E, R | Scope.Scope>
  /**
   * Sees the cause of each crash that a restart follows, and how many restarts the period holds. Absent: a line in the log, also when it
   * gives up.
   */
  readonly onRestart?: (cause: Cause.Cause<unknown>, nth: number) => Effect.Effect<void>
  /** Whether a crash uses one of the restarts allowed; one that does not is followed by a restart all the same. */
  readonly counts?: (cause: Cause.Cause<unknown>) => boolean
  /** Runs once, at its end, before its watchers are told. */
  onEnd?(end: ChildEnd<A, E>): Effect.Effect<void>
}

/** Why a child has ended for good. `stopped`: its scope was closed, or `stop` was called. */
export type ChildEnd<A, E> =
  | { readonly reason: "finished"; readonly value: A }
  | { readonly reason: "crashed"; readonly cause: Cause.Cause<E> }
  | { readonly reason: "gave-up"; readonly cause: Cause.Cause<unknown>; readonly restarts: number }
  | { readonly reason: "stopped" }

export interface Child<A, E> {
  readonly node: TreeNode
  /** Completes when it is ready for the first time, or has ended before that. */
  readonly ready: Effect.Effect<void>
  /** Watches it: completes when it has ended for good. */
  readonly ended: Effect.Effect<ChildEnd<A, E>>
  readonly stop: Effect.Effect<void>
}

/** Restart times that still count at `nowMs`. Pure. */
export const withinPeriod = (
  restartsAtMs: ReadonlyArray<number>,
  nowMs: number,
  periodMs: number,
): Array<number> => restartsAtMs.filter((at) => nowMs - at < periodMs)

/** The pause before the `nth` restart in the period (1-based), with `jitter` in [0, 1): 50 to 100 % of the step. Pure. */
export const backoffMs = (policy: RestartPolicy, nth: number, jitter: number): number =>
  Math.min(policy.backoffCapMs, policy.backoffBaseMs * 2 ** (nth - 1)) * (0.5 + jitter / 2)

/** A child has crashed more often than its specification allows, and its parent's specification says that the parent crashes with it. */
class ChildGaveUp extends Schema.TaggedError<ChildGaveUp>()("ChildGaveUp", {
  child: Schema.String,
}) {
  override get message() {
    return `${this.child} gave up`
  }
}

const endedEarly = Cause.die(new Error("a permanent child ended by itself"))

const reportCrash = (part: string, cause: Cause.Cause<unknown>) =>
  Effect.logError("a part of the node has crashed and is started again").pipe(
    Effect.annotateLogs({ part, why: exceptionReason(Cause.squash(cause)) }),
  )

const goesOn: ChildGivesUp = { does: "goes on", outcome: "the others go on" }

/** Tells the parent's node, the log and the parent's incarnation of a child that has given up. */
const escalate = (
  { kind, name, onRestart }: Pick<ChildSpec<unknown, unknown, unknown>, "kind" | "name" | "onRestart">,
  { childGivesUp: { does, outcome } = goesOn, crash, node }: Parent,
  { cause, restarts }: { readonly cause: Cause.Cause<unknown>; readonly restarts: number },
): Effect.Effect<void> =>
  Effect.gen(function* () {
    const reason = exceptionReason(Cause.squash(cause))
    node.childGaveUp({ name, kind, atMs: yield* monotonicMs, restarts, reason, outcome })
    if (onRestart === undefined)
      yield* Effect.logError("a part of the node has given up").pipe(
        Effect.annotateLogs({ part: name, under: node.name, restarts, why: reason, outcome }),
      )
    if (does === "restarts") crash?.(new ChildGaveUp({ child: name }))
  })

/** The incarnations of a child, one after the other, until it has ended for good. Fails only by interruption. */
const livesOf = <A, E, R>(
  spec: ChildSpec<A, E, unknown>,
  node: TreeNode,
  incarnation: Effect.Effect<A, E, R>,
): Effect.Effect<ChildEnd<A, E>, never, R> =>
  Effect.gen(function* () {
    const { counts = () => true, intensity: policy, restart } = spec
    let restartsAtMs: Array<number> = []
    for (;;) {
      const exit = yield* Effect.exit(incarnation)
      if (Exit.isSuccess(exit) && restart !== "permanent") return { reason: "finished", value: exit.value }
      const cause = Exit.isSuccess(exit) ? endedEarly : exit.cause
      if (Cause.hasInterruptsOnly(cause)) return yield* Effect.interrupt
      if (restart === "temporary" && Exit.isFailure(exit)) return { reason: "crashed", cause: exit.cause }
      const nowMs = yield* monotonicMs
      restartsAtMs = withinPeriod(restartsAtMs, nowMs, policy.periodMs)
      const counted = counts(cause)
      if (counted && restartsAtMs.length >= policy.intensity)
        return { reason: "gave-up", cause, restarts: restartsAtMs.length }
      if (counted) restartsAtMs.push(nowMs)
      node.state = "restarting"
      node.restarts++
      yield* spec.onRestart?.(cause, restartsAtMs.length) ?? reportCrash(spec.name, cause)
      yield* Effect.sleep(backoffMs(policy, Math.max(1, restartsAtMs.length), yield* Random.next))
      node.state = "starting"
      node.startedAtMs = yield* monotonicMs
    }
  })

/**
 * Starts a child under the current parent. It is stopped when the caller's scope closes or the parent's incarnation ends,
 * whichever is first.
 */
export const startChild = <A, E, R>(
  spec: ChildSpec<A, E, R>,
): Effect.Effect<Child<A, E>, never, Exclude<R, Scope.Scope> | Scope.Scope> =>
  Effect.acquireRelease(
    Effect.gen(function* () {
      const parent = yield* CurrentParent
      const scope = yield* parent.scope === undefined ? Scope.make() : Scope.fork(parent.scope)
      const node = new TreeNode(spec.name, spec.kind, yield* monotonicMs)
      const ready = Deferred.makeUnsafe<void>()
      const ended = Deferred.makeUnsafe<ChildEnd<A, E>>()
      const gone = Deferred.makeUnsafe<void>()
      const self: Self = {
        node,
        ready: () => {
          if (node.state === "starting") {
            node.state = "running"
            parent.node.childRuns(spec.name)
          }
          Deferred.doneUnsafe(ready, Exit.void)
        },
      }
      const { childGivesUp } = spec
      const incarnation = Effect.scoped(
        Effect.flatMap(Effect.scope, (own) => {
          const under = (more: Partial<Parent>) =>
            Effect.provideService(
              Effect.suspend(() => spec.run(self)),
              CurrentParent,
              { node, scope: own, ...(childGivesUp === undefined ? {} : { childGivesUp }), ...more },
            )
          if (childGivesUp?.does !== "restarts") return under({})
          const crashed = Deferred.makeUnsafe<never>()
          const crash = (cause: unknown) => void Deferred.doneUnsafe(crashed, Exit.die(cause))
          return Effect.raceFirst(under({ crash }), Deferred.await(crashed))
        }),
      )
      let told = false
      const tell = (end: ChildEnd<A, E>): Effect.Effect<void> => {
        if (told) return Effect.void
        told = true
        return Effect.andThen(
          spec.onEnd?.(end) ?? Effect.void,
          Effect.sync(() => {
            Deferred.doneUnsafe(ended, Exit.succeed(end))
            Deferred.doneUnsafe(ready, Exit.void)
          }),
        )
      }
      const fiber = yield* Effect.forkDetach(
        Effect.onExit(livesOf(spec, node, incarnation), (exit) =>
          Effect.suspend(() => {
            const end: ChildEnd<A, E> = Exit.isSuccess(exit) ? exit.value : { reason: "stopped" }
            // What has given up stays in the tree, for operators to see, until its parent ends.
            if (end.reason === "gave-up") node.state = "gave up"
            else parent.node.remove(node)
            if (end.reason === "gave-up") return Effect.andThen(escalate(spec, parent, end), tell(end))
            return Effect.andThen(tell(end), Effect.forkDetach(Scope.close(scope, Exit.void)))
          }),
        ),
      )
      parent.node.add(node)
      yield* Scope.addFinalizer(
        scope,
        Effect.gen(function* () {
          if (node.state !== "gave up") node.state = "stopping"
          const stopping = Effect.asVoid(Fiber.interrupt(fiber))
          const inTime = yield* Number.isFinite(spec.shutdownMs)
            ? Effect.timeoutOption(stopping, spec.shutdownMs)
            : Effect.asSome(stopping)
          parent.node.remove(node)
          yield* tell({ reason: "stopped" })
          Deferred.doneUnsafe(gone, Exit.void)
          if (inTime._tag === "Some") return
          yield* Effect.logWarning("a part of the node did not stop in its time").pipe(
            Effect.annotateLogs({ part: spec.name, seconds: spec.shutdownMs / 1000 }),
          )
        }),
      )
      return {
        node,
        ready: Deferred.await(ready),
        ended: Deferred.await(ended),
        // Where its parent is stopping it already, the scope is closed and only the end is waited for.
        stop: Effect.andThen(Scope.close(scope, Exit.void), Deferred.await(gone)),
      } satisfies Child<A, E>
    }),
    ({ stop }) => stop,
  )
