// One deployed model as an actor: loads and unloads its engine, one message at a time. Requests do not pass through the mailbox;
// they go to the engine that this actor has brought into memory (ModelEngine).
import { Effect, type Scope } from "effect"
import type { Deployment } from "#domain/models/Deployment.ts"
import type { Evictable } from "#domain/models/Eviction.ts"
import { reporter } from "#domain/process/OperatorLog.ts"
import { ModelNotLoaded, type ModelUnavailable, type UnloadFailed } from "#domain/wire/Errors.ts"
import type { End, EngineKind, Facts, Request } from "#engines/protocol/Verbs.ts"
import { type ActorRef, type FailureOf, isNoReply, type ReplyOf, spawn } from "../Actor.ts"
import { startChild } from "../Child.ts"
import { Device, hostId } from "../device/Device.ts"
import type { EngineHost } from "../engine/EngineHost.ts"
import type { RequestReader, RunError, RunOptions } from "../engine/EngineRequest.ts"
import * as Limits from "../Limits.ts"
import * as Specifications from "../Specifications.ts"
import { KeptThreads } from "../threads/KeptThreads.ts"
import { problemAtStart } from "./MemoryClaim.ts"
import { ModelEngine } from "./ModelEngine.ts"
import {
  Discard,
  Load,
  type LoadError,
  type ModelMessage,
  Retire,
  Unload,
  type Unloaded,
} from "./ModelMessages.ts"
import type { ModelOptions, ModelSnapshot } from "./ModelState.ts"
import { ModelUse } from "./ModelUse.ts"

export class Model<K extends EngineKind> {
  readonly #engine: ModelEngine<K>
  #ref: ActorRef<ModelEngine<K>, ModelMessage> | undefined
  /** An operator's unload stays in force until an operator's load. */
  #held: boolean
  readonly #use = new ModelUse()
  /** True once another model, or none, answers under its id. */
  #leaving = false

  private constructor(engine: ModelEngine<K>, held: boolean) {
    this.#engine = engine
    this.#held = held
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
        keptThreads: yield* KeptThreads,
        say: yield* reporter,
        onGivenUp: () => void model.#ref?.tell(new Discard()),
      })
      const model = new Model(engine, options.held ?? false)
      const problem = yield* problemAtStart(device, options.deployment, options.processBytes)
      if (problem !== undefined) {
        engine.standing.lack(problem, true)
        engine.news.cannotBeLoaded(problem)
      }
      const replied = <Reply>(reply: Reply) => ({ state: engine, reply })
      model.#ref = yield* spawn<ModelEngine<K>, ModelMessage>({
        name: `model ${engine.entry.id}`,
        terms: Specifications.model,
        capacity: Limits.modelMailbox,
        // Whatever was in memory goes with the incarnation.
        initial: () => Effect.acquireRelease(Effect.succeed(engine), () => Effect.ignore(engine.release())),
        handle: {
          Load: (_, { force }) => Effect.map(model.#onLoad(force), replied),
          Unload: () => Effect.map(model.#onUnload, replied),
          Retire: (_, { forModel }) => Effect.map(model.#onRetire(forModel), replied),
          Discard: () => Effect.map(engine.discard(), replied),
        },
        details: {
          state: () => engine.standing.status,
          holds: () => ({ memoryBytes: engine.claimedBytes(hostId) }),
        },
      })
      yield* Effect.forkScoped(
        Effect.map(model.#ref.ended, (end) => {
          if (end.reason === "gave-up")
            engine.standing.lose("its part of the node has given up (edgewise tree)")
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

  get kind(): K {
    return this.#engine.kind
  }

  /** The deployment that it was last loaded with, or will be loaded with. */
  get deployment(): Deployment {
    return this.#engine.deployed
  }

  /** Whether an operator has unloaded it. */
  get isHeld(): boolean {
    return this.#held
  }

  /** Takes over a deployment that differs only in what an engine is not started with. */
  amend(deployment: Deployment): void {
    this.#engine.deployed = deployment
  }

  /** It has been removed or replaced. From now on it is neither evicted nor unloaded for being idle: it ends anyway. */
  leave(): void {
    this.#leaving = true
    this.#engine.relocates = false
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
    const { deployed, entry, host, meters, news, standing } = this.#engine
    const { lastFailure, status, timings } = standing
    const { parameters } = deployed
    return { entry, parameters, status, host, lastFailure, timings, meters, output: news.output }
  }

  /** What unloading it would free on a device; undefined while it is used, pinned or not loaded. */
  evictable(deviceId: string): Evictable | undefined {
    const sizeBytes = this.claimedBytes(deviceId)
    if (sizeBytes === 0 || this.#engine.entry.runtime.pinned || !this.#isIdle()) return undefined
    return { id: this.#engine.entry.id, sizeBytes, reloadMs: this.#engine.standing.timings.loadMs ?? 0 }
  }

  /** An operator's or the node's own load. */
  load(force: boolean): Effect.Effect<Facts<EngineKind>, LoadError> {
    return Effect.suspend(() => {
      this.#held = false
      return this.#ask(new Load(force))
    })
  }

  /**
   * An operator's unload: requests get `Model not loaded` until it is loaded again. Ends a load that is under way, and
   * forgets which users were there at crashes.
   */
  get unload(): Effect.Effect<Unloaded, ModelUnavailable | UnloadFailed> {
    return Effect.suspend(() => {
      this.#held = true
      this.#engine.abandon()
      return this.#ask(new Unload())
    })
  }

  /** Unloads it if no request uses it; the next request loads it again. `forModel` is the one that needs its memory. */
  retire(forModel?: string): Effect.Effect<boolean> {
    return Effect.orElseSucceed(this.#ask(new Retire(forModel)), () => false)
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
      if (host !== undefined && this.#engine.standing.status !== "failed")
        return host.requests.run(request, reader, options)
      return this.#afterLoad((host) => host.requests.run(request, reader, options))
    })
  }

  /** The facts of its engine. Loads it first, unless an operator has unloaded it. */
  get loaded(): Effect.Effect<Facts<K>, LoadError | ModelNotLoaded> {
    return Effect.suspend((): Effect.Effect<Facts<K>, LoadError | ModelNotLoaded> => {
      const facts = this.#engine.standing.status === "failed" ? undefined : this.facts()
      if (facts !== undefined) return Effect.succeed(facts)
      return this.#afterLoad((host) =>
        host.facts === undefined
          ? Effect.fail(this.#engine.standing.unavailable())
          : Effect.succeed(host.facts),
      )
    })
  }

  #afterLoad<A, E>(
    use: (host: EngineHost<K>) => Effect.Effect<A, E>,
  ): Effect.Effect<A, E | LoadError | ModelNotLoaded> {
    const notLoaded = () => new ModelNotLoaded({ model: this.#engine.entry.id })
    if (this.#held) return Effect.fail(notLoaded())
    if (this.#engine.standing.reviveInMs() > 0) return Effect.fail(this.#engine.standing.unavailable())
    return this.#ask(new Load(false)).pipe(
      Effect.mapError((error) => (this.#held ? notLoaded() : error)),
      Effect.flatMap((): Effect.Effect<A, E | LoadError | ModelNotLoaded> => {
        if (this.#engine.host !== undefined) return use(this.#engine.host)
        return Effect.fail(this.#held ? notLoaded() : this.#engine.standing.unavailable())
      }),
      (work) => this.#use.whileWaiting(work),
    )
  }

  #ask<M extends ModelMessage>(message: M): Effect.Effect<ReplyOf<M>, FailureOf<M> | ModelUnavailable> {
    if (this.#ref === undefined) return Effect.fail(this.#engine.standing.unavailable())
    // Without a deadline: how long a load may take is the engine's own deadline (EngineHost).
    return Effect.mapError(this.#ref.ask(message), (error) =>
      isNoReply(error) ? this.#engine.standing.unavailable() : error,
    )
  }

  get #onUnload(): Effect.Effect<Unloaded, UnloadFailed> {
    return Effect.tap(this.#engine.release(), ({ freedBytes, tookMs, was }) =>
      Effect.sync(() => (was ? this.#engine.news.unloaded("operator", freedBytes, tookMs) : undefined)),
    )
  }

  #onRetire(forModel: string | undefined): Effect.Effect<boolean> {
    const engine = this.#engine
    // Checked and unloaded in one step: a later request finds no host and sends a Load.
    return Effect.suspend(() =>
      this.#isIdle() && !engine.entry.runtime.pinned
        ? Effect.match(engine.release(), {
            onSuccess: ({ freedBytes, tookMs }) => {
              if (forModel === undefined) engine.news.unloaded("idle", freedBytes, tookMs)
              else engine.news.evicted(forModel)
              return true
            },
            onFailure: () => false,
          })
        : Effect.succeed(false),
    )
  }

  #onLoad(force: boolean): Effect.Effect<Facts<EngineKind>, LoadError> {
    const engine = this.#engine
    return Effect.suspend((): Effect.Effect<Facts<EngineKind>, LoadError> => {
      // An unload was requested after this load: the later request wins.
      if (this.#held) return Effect.fail(engine.standing.unavailable())
      const facts = force || engine.standing.status !== "loaded" ? undefined : engine.host?.facts
      return facts === undefined ? engine.load() : Effect.succeed(facts)
    })
  }

  #isIdle(): boolean {
    if (this.#leaving || !this.#use.isIdle) return false
    return this.#engine.standing.status === "loaded" && this.#engine.isIdle()
  }

  /** Unloads the model when it has had no request for `idleMs`. */
  #idleWatch(idleMs: number): Effect.Effect<never> {
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        const idleSinceMs = this.#engine.host?.idleSinceMs()
        const dueInMs = idleSinceMs === undefined ? idleMs : idleSinceMs + idleMs - performance.now()
        if (dueInMs > 0) yield* Effect.sleep(dueInMs)
        else if (this.#isIdle()) yield* this.retire()
        else yield* Effect.sleep(idleMs)
      }
    })
  }
}

/** A model whose kind is not known to the caller; `kind` tells it. */
export type AnyModel = { readonly [K in EngineKind]: Model<K> }[EngineKind]
