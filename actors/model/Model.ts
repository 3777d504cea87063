// One deployed model as an actor: it takes one message at a time, ModelState decides, and its commands are carried out here. What takes long,
// bringing an engine in and taking it out, is a fiber of the actor whose end is a message. Requests do not pass through the mailbox; they go
// to the engine that is in memory (ModelEngine).
import { Cause, Deferred, Effect, Exit, type Fiber, type Scope } from "effect"
import type { Deployment } from "#domain/models/Deployment.ts"
import type { Evictable } from "#domain/models/Eviction.ts"
import { reporter } from "#domain/process/OperatorLog.ts"
import { exceptionReason } from "#domain/process/PlainLine.ts"
import {
  type InsufficientMemory,
  ModelNotLoaded,
  ModelUnavailable,
  UnloadFailed,
} from "#domain/wire/Errors.ts"
import type { End, EngineKind, Facts, Request } from "#engines/protocol/Verbs.ts"
import { type ActorRef, Message, spawn } from "../Actor.ts"
import { startChild } from "../Child.ts"
import { Device, hostId } from "../device/Device.ts"
import type { EngineHost } from "../engine/EngineHost.ts"
import type { RequestReader, RunError, RunOptions } from "../engine/EngineRequest.ts"
import * as Limits from "../Limits.ts"
import * as Specifications from "../Specifications.ts"
import { KeptCosts, KeptThreads } from "../threads/KeptResults.ts"
import { problemAtStart } from "./MemoryClaim.ts"
import { ModelEngine, type ModelOptions, type NotBroughtIn } from "./ModelEngine.ts"
import type { ModelSnapshot } from "./ModelSnapshot.ts"
import {
  type Answer,
  type Ask,
  type Command,
  decide,
  type Event,
  firstState,
  lost,
  type ModelState,
  type NotLoaded,
  refusalOf,
  restarted,
  reviveInMs,
  type Unloaded,
} from "./ModelState.ts"
import { ModelUse } from "./ModelUse.ts"

export type LoadError = InsufficientMemory | ModelUnavailable

class Happened extends Message<void> {
  readonly _tag = "Happened"
  readonly event: Event
  /** The scope of the incarnation that it concerns; absent: of any. */
  readonly of: Scope.Scope | undefined
  constructor(event: Event, of?: Scope.Scope) {
    super()
    this.event = event
    this.of = of
  }
}

/** Places in the mailbox that are kept for messages of the engine and of what is under way. A guess: there are two or three. */
const ownMessages = 64

const unavailable: Answer = { is: "refused", because: "unavailable" }

const notLoadedOf = (cause: Cause.Cause<InsufficientMemory | ModelUnavailable | NotBroughtIn>): NotLoaded => {
  if (Cause.hasInterruptsOnly(cause)) return "abandoned"
  const error = cause.reasons.find(Cause.isFailReason)?.error
  if (error?._tag === "InsufficientMemory") return error
  if (error?._tag === "NotBroughtIn") return { reason: error.reason, again: error.again }
  return { reason: exceptionReason(Cause.squash(cause)), again: false }
}

export class Model<K extends EngineKind> {
  readonly #engine: ModelEngine<K>
  #state: ModelState
  #ref: ActorRef<undefined, Happened> | undefined
  readonly #use = new ModelUse()
  /** Where the answers go that are due. */
  readonly #answers = new Map<Ask, Deferred.Deferred<Answer>>()
  #asks = 0
  /** The incarnation's: what is under way ends with it. */
  #scope: Scope.Scope | undefined
  #loading: Fiber.Fiber<unknown, unknown> | undefined

  private constructor(engine: ModelEngine<K>, state: ModelState) {
    this.#engine = engine
    this.#state = state
  }

  /** Starts the actor of a model of this kind in the caller's scope. */
  static make<K extends EngineKind>(
    kind: K,
    options: ModelOptions,
  ): Effect.Effect<Model<K>, never, Scope.Scope | Device> {
    return Effect.gen(function* () {
      const device = yield* Device
      const engine: ModelEngine<K> = new ModelEngine(kind, {
        options,
        device,
        kept: { threads: yield* KeptThreads, costs: yield* KeptCosts },
        say: yield* reporter,
        tell: (event) => model.#tell(event),
      })
      const problem = yield* problemAtStart(device, options.deployment, options.processBytes)
      const model = new Model(engine, firstState(options.held ?? false, problem))
      if (problem !== undefined) engine.news.cannotBeLoaded(problem)
      model.#ref = yield* spawn<undefined, Happened>({
        name: `model ${engine.entry.id}`,
        terms: Specifications.model,
        capacity: Limits.modelMailbox,
        initial: () => model.#begin,
        handle: {
          Happened: (state, message) => Effect.as(model.#happened(message), { state, reply: undefined }),
        },
        details: {
          state: () => model.#state.status,
          holds: () => ({ memoryBytes: engine.claimedBytes(hostId) }),
        },
      })
      yield* Effect.forkScoped(
        Effect.map(model.#ref.ended, (end) => {
          if (end.reason !== "gave-up") return
          const reason = "its part of the node has given up (edgewise tree)"
          model.#state = lost(model.#state, reason, performance.now())
        }),
      )
      const { idleUnloadMs = 0 } = options
      if (idleUnloadMs > 0 && !engine.entry.runtime.pinned)
        yield* startChild({
          ...Specifications.worker,
          name: `idle watch ${engine.entry.id}`,
          run: ({ ready }) => Effect.andThen(Effect.sync(ready), model.#idleWatch(idleUnloadMs)),
        })
      return model
    })
  }

  /** What was in memory goes with the incarnation, and what waits is refused. */
  get #begin(): Effect.Effect<undefined, never, Scope.Scope> {
    return Effect.gen({ self: this }, function* () {
      this.#scope = yield* Effect.scope
      yield* Effect.addFinalizer(() =>
        Effect.suspend(() => {
          this.#state = restarted(this.#state)
          for (const ask of [...this.#answers.keys()]) this.#answer(ask, unavailable)
          return this.#engine.takeOut()
        }),
      )
      return undefined
    })
  }

  #happened({ event, of }: Happened): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (of !== undefined && of !== this.#scope) return Effect.void
      const facts = { nowMs: performance.now(), isUnused: this.#isUnused }
      const [state, commands] = decide(this.#state, event, facts)
      // Before the answers: who has asked reads it.
      this.#state = state
      // In one step with the decision: no request reaches an engine that is to be taken out.
      const works = commands.flatMap((command) => this.#carryOut(command) ?? [])
      return Effect.all(works, { discard: true })
    })
  }

  /** Gives what takes long, to be started. */
  #carryOut(command: Command): Effect.Effect<unknown> | undefined {
    const engine = this.#engine
    switch (command.do) {
      case "bring in":
        return Effect.map(this.#fork(engine.bringIn()), (fiber) => {
          this.#loading = fiber
          fiber.addObserver((exit) =>
            this.#tell(
              Exit.isSuccess(exit)
                ? { is: "came" }
                : { is: "did not come", because: notLoadedOf(exit.cause) },
            ),
          )
        })
      case "take out": {
        const taking = Effect.map(engine.takeOut(), (went) => this.#tell({ is: "went", ...went }))
        return this.#fork(Effect.uninterruptible(taking))
      }
      case "abandon":
        this.#loading?.interruptUnsafe()
        break
      case "answer":
        this.#answer(command.ask, command.answer)
        break
      case "forget crashes":
        engine.forgetCrashes()
        break
      case "report":
        engine.news.report(command.news, engine.host)
        break
      case "record":
        if ("loadMs" in command) engine.meters.loadMs.record(command.loadMs)
        else engine.meters.unloadToFreedMs.record(command.unloadToFreedMs)
    }
    return undefined
  }

  #fork<A, E>(work: Effect.Effect<A, E>): Effect.Effect<Fiber.Fiber<A, E>> {
    return Effect.forkIn(work, this.#scope!, { startImmediately: true })
  }

  #answer(ask: Ask, answer: Answer): void {
    const waiting = this.#answers.get(ask)
    this.#answers.delete(ask)
    if (waiting !== undefined) Deferred.doneUnsafe(waiting, Exit.succeed(answer))
  }

  /** Of the engine, and of what is under way. There is always room for it, unless the actor has ended. */
  #tell(event: Event): void {
    this.#ref?.tell(new Happened(event, this.#scope))
  }

  #ask(event: (ask: Ask) => Event): Effect.Effect<Answer> {
    return Effect.suspend(() => {
      if (this.#ref === undefined || this.#answers.size >= Limits.modelMailbox - ownMessages)
        return Effect.succeed(unavailable)
      const ask = ++this.#asks
      const answer = Deferred.makeUnsafe<Answer>()
      this.#answers.set(ask, answer)
      // Without a deadline: how long a load may take is the engine's own deadline (EngineHost).
      return Effect.andThen(this.#ref.ask(new Happened(event(ask))), Deferred.await(answer)).pipe(
        Effect.catch(() => {
          // The actor has ended.
          this.#answers.delete(ask)
          return Effect.succeed(unavailable)
        }),
      )
    })
  }

  get kind(): K {
    return this.#engine.kind
  }

  /** The deployment that it was last loaded with, or will be loaded with. */
  get deployment(): Deployment {
    return this.#engine.deployed
  }

  /** Whether an operator has unloaded it. */
  get isHeld(): boolean {
    return this.#state.isHeld
  }

  /** Takes over a deployment that differs only in what an engine is not started with. */
  amend(deployment: Deployment): void {
    this.#engine.deployed = deployment
  }

  /** It has been removed or replaced. From now on it is neither evicted nor unloaded for being idle: it ends anyway. */
  leave(): void {
    this.#engine.isLeaving = true
  }

  /** Makes a reload wait, see ModelUse. */
  get hold(): Effect.Effect<void, never, Scope.Scope> {
    return this.#use.hold
  }

  /** Keeps it loaded between requests that follow within seconds: it is neither evicted nor unloaded for being idle. */
  get keep(): Effect.Effect<void, never, Scope.Scope> {
    return this.#use.keep
  }

  /** Whether nothing runs on it, waits for it or holds it. */
  isQuiet(): boolean {
    return this.#use.isQuiet && (this.#engine.host === undefined || this.#engine.isIdle())
  }

  /** Bytes that it claims of a device, until they are given back. */
  claimedBytes(deviceId: string): number {
    return this.#engine.claimedBytes(deviceId)
  }

  /** The facts of its engine, once it has loaded. */
  facts(): Facts<K> | undefined {
    return this.#engine.host?.facts
  }

  /** Whether other requests need its engine, see SlotScheduler. */
  isContended(user: string): boolean {
    return this.#engine.host?.requests.isContended(user) ?? false
  }

  view(): ModelSnapshot {
    const { deployed, entry, host, meters, news } = this.#engine
    const { lastFailure, status, timings } = this.#state
    const { parameters } = deployed
    return { entry, parameters, status, host, lastFailure, timings, meters, output: news.output }
  }

  /** What unloading it would free on a device; undefined while it is used, pinned or not loaded. */
  evictable(deviceId: string): Evictable | undefined {
    const sizeBytes = this.claimedBytes(deviceId)
    if (sizeBytes === 0 || this.#state.status !== "loaded" || !this.#isUnused) return undefined
    return { id: this.#engine.entry.id, sizeBytes, reloadMs: this.#state.timings.loadMs ?? 0 }
  }

  /** An operator's or the node's own load. */
  load(force: boolean): Effect.Effect<Facts<EngineKind>, LoadError> {
    return Effect.flatMap(
      this.#ask((ask) => ({ is: "load", ask, by: "operator", force })),
      (answer): Effect.Effect<Facts<EngineKind>, LoadError> => {
        const facts = answer.is === "loaded" ? this.facts() : undefined
        return facts === undefined ? Effect.fail(this.#loadError(answer)) : Effect.succeed(facts)
      },
    )
  }

  /**
   * An operator's unload: requests get `Model not loaded` until it is loaded again. Ends a load that is under way, and
   * forgets which users were there at crashes.
   */
  get unload(): Effect.Effect<Unloaded, ModelUnavailable | UnloadFailed> {
    return Effect.flatMap(
      this.#ask((ask) => ({ is: "unload", ask })),
      (answer): Effect.Effect<Unloaded, ModelUnavailable | UnloadFailed> => {
        if (answer.is === "gone") return Effect.succeed(answer)
        return Effect.fail(
          answer.is === "stuck"
            ? new UnloadFailed({ model: this.#engine.entry.id, heldBytes: answer.heldBytes })
            : this.#unavailable(),
        )
      },
    )
  }

  /** Unloads it if no request uses it; the next request loads it again. `forModel` is the one that needs its memory. */
  retire(forModel?: string): Effect.Effect<boolean> {
    const why = forModel === undefined ? "idle" : { for: forModel }
    return Effect.map(
      this.#ask((ask) => ({ is: "retire", ask, why })),
      ({ is }) => is === "gone",
    )
  }

  /** Runs one request, see `Run`. Loads the model first, unless an operator has unloaded it. */
  run(
    request: Request<K>,
    reader: RequestReader<K>,
    options: RunOptions = {},
  ): Effect.Effect<End<K>, RunError | ModelNotLoaded> {
    return Effect.suspend((): Effect.Effect<End<K>, RunError | ModelNotLoaded> => {
      const { host } = this.#engine
      // While an engine restarts, its host keeps the queue: the request waits there.
      if (host !== undefined && this.#state.status !== "failed")
        return host.requests.run(request, reader, options)
      return this.#afterLoad((host) => host.requests.run(request, reader, options))
    })
  }

  /** The facts of its engine. Loads it first, unless an operator has unloaded it. */
  get loaded(): Effect.Effect<Facts<K>, LoadError | ModelNotLoaded> {
    return Effect.suspend((): Effect.Effect<Facts<K>, LoadError | ModelNotLoaded> => {
      const facts = this.#state.status === "failed" ? undefined : this.facts()
      if (facts !== undefined) return Effect.succeed(facts)
      return this.#afterLoad(({ facts }) =>
        facts === undefined ? Effect.fail(this.#unavailable()) : Effect.succeed(facts),
      )
    })
  }

  #afterLoad<A, E>(
    use: (host: EngineHost<K>) => Effect.Effect<A, E>,
  ): Effect.Effect<A, E | LoadError | ModelNotLoaded> {
    const notLoaded = () => new ModelNotLoaded({ model: this.#engine.entry.id })
    // Before a message: a failed model may get thousands of requests.
    const because = refusalOf(this.#state, performance.now())
    if (because !== undefined) return Effect.fail(because === "unloaded" ? notLoaded() : this.#unavailable())
    return this.#ask((ask) => ({ is: "load", ask, by: "request", force: false })).pipe(
      Effect.flatMap((answer): Effect.Effect<A, E | LoadError | ModelNotLoaded> => {
        const { host } = this.#engine
        if (answer.is === "loaded" && host !== undefined) return use(host)
        // It may have been unloaded since.
        return Effect.fail(this.#state.isHeld ? notLoaded() : this.#loadError(answer))
      }),
      (work) => this.#use.whileWaiting(work),
    )
  }

  #loadError(answer: Answer): LoadError {
    return answer.is === "refused" && typeof answer.because === "object"
      ? answer.because
      : this.#unavailable()
  }

  #unavailable(): ModelUnavailable {
    const retryAfterMs = Math.max(1_000, reviveInMs(this.#state, performance.now()))
    return new ModelUnavailable({ model: this.#engine.entry.id, retryAfterMs })
  }

  /** Whether it may be unloaded without an order: nothing uses it or waits for it. */
  get #isUnused(): boolean {
    const { entry, isLeaving } = this.#engine
    return !isLeaving && !entry.runtime.pinned && this.#use.isIdle && this.#engine.isIdle()
  }

  /** Unloads the model when it has had no request for `idleMs`. */
  #idleWatch(idleMs: number): Effect.Effect<never> {
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        const idleSinceMs = this.#engine.host?.idleSinceMs()
        const dueInMs = idleSinceMs === undefined ? idleMs : idleSinceMs + idleMs - performance.now()
        if (dueInMs > 0) yield* Effect.sleep(dueInMs)
        else if (this.#isUnused) yield* this.retire()
        else yield* Effect.sleep(idleMs)
      }
    })
  }
}

/** A model whose kind is not known to the caller; `kind` tells it. */
export type AnyModel = { readonly [K in EngineKind]: Model<K> }[EngineKind]
