// One deployed model as an actor: loads and unloads its engine, one message at a time, and keeps its status.
// Requests do not pass through the mailbox; they go to the current EngineHost, which this actor publishes.

import { Cause, Deferred, Effect, Exit, Scope } from "effect"
import { CrashSuspects } from "#domain/models/CrashSuspects.ts"
import type { Evictable } from "#domain/models/Eviction.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { type OperatorLine, reporter } from "#domain/process/OperatorLog.ts"
import { exceptionReason } from "#domain/process/PlainLine.ts"
import { mostOf } from "#domain/threads/ThreadChoice.ts"
import { ModelNotLoaded, type ModelUnavailable, UnloadFailed } from "#domain/wire/Errors.ts"
import type { End, EngineKind, Facts, Request } from "#engines/protocol/Verbs.ts"
import { type ActorRef, type Message, spawn } from "../Actor.ts"
import { Device, type Grant } from "../device/Device.ts"
import { EngineHost, type HostEvent } from "../engine/EngineHost.ts"
import type { Listener, RunError, RunOptions } from "../engine/EngineRequest.ts"
import { ModelMeters } from "../engine/ModelMeters.ts"
import * as Tree from "../Tree.ts"
import { KeptThreads, type ThreadResults } from "../threads/KeptThreads.ts"
import { lackOf } from "./DeploymentChange.ts"
import { claimRoom, claimSecond, heldOnGpu, problemAtStart } from "./MemoryClaim.ts"
import {
  Discard,
  Load,
  type LoadError,
  type ModelMessage,
  Retire,
  Unload,
  type Unloaded,
} from "./ModelMessages.ts"
import { ModelNews } from "./ModelNews.ts"
import type { Deployment } from "./ModelRegistry.ts"
import type { HostView, ModelOptions, ModelSnapshot } from "./ModelSnapshot.ts"
import { ModelState } from "./ModelState.ts"
import { threadTerms, wantsSecond } from "./ThreadTerms.ts"

/** The actor's state: the scope of what is in memory, if anything is. Closed with the incarnation. */
interface InMemory {
  scope: Scope.Closeable | undefined
}

const nothingUnloaded: Unloaded = { was: false, freedBytes: 0, tookMs: 0 }

export class Model<K extends EngineKind> {
  readonly kind: K
  private readonly options: ModelOptions
  private deployed: Deployment
  private readonly device: Device["Service"]
  private readonly keptThreads: ThreadResults
  private ref: ActorRef<ModelMessage> | undefined
  private host: EngineHost<K> | undefined
  /** The last claim; it counts until its process has ended. */
  private claim: Grant | undefined
  private readonly meters: ModelMeters
  private suspects = new CrashSuspects()
  private readonly standing: ModelState
  private readonly news: ModelNews
  /** An operator's unload stays in force until an operator's load. */
  private held = false
  /** Requests that wait for a load which they started: the model is not idle then. */
  private wanted = 0
  /** Open work of several requests, such as a live session: see `hold`. */
  private holds = 0
  private keeps = 0
  /** True once another model, or none, answers under its id. */
  private leaving = false
  /** When the load or restart under way began. */
  private beganMs = 0
  /** Ends the load under way, if one is. */
  private abandonLoad: Deferred.Deferred<never, ModelUnavailable> | undefined

  private constructor(
    kind: K,
    options: ModelOptions,
    device: Device["Service"],
    keptThreads: ThreadResults,
    say: (line: OperatorLine) => void,
  ) {
    this.kind = kind
    this.options = options
    this.deployed = options.deployment
    this.news = new ModelNews(this.entry, say, options.output)
    this.device = device
    this.keptThreads = keptThreads
    this.meters = options.meters ?? new ModelMeters()
    this.held = options.held ?? false
    this.standing = new ModelState(this.entry.id, this.meters, options.onStatus)
  }

  /** Starts the actor of a model of this kind in the caller's scope. */
  static make<K extends EngineKind>(
    kind: K,
    options: ModelOptions,
  ): Effect.Effect<Model<K>, never, Scope.Scope | Device> {
    return Effect.gen(function* () {
      const device = yield* Device
      const model = new Model(kind, options, device, yield* KeptThreads, yield* reporter)
      const problem = yield* problemAtStart(device, options.deployment, options.processBytes)
      if (problem !== undefined) {
        model.standing.lack(problem, true)
        model.news.cannotBeLoaded(problem)
      }
      model.ref = yield* spawn<InMemory, ModelMessage>({
        name: `model ${model.entry.id}`,
        capacity: Tree.modelMailbox,
        restart: Tree.model,
        initial: Effect.acquireRelease(
          Effect.sync((): InMemory => ({ scope: undefined })),
          (memory) => Effect.ignore(model.release(memory)),
        ),
        handle: (memory, message) =>
          Effect.map(model.handle(memory, message), (reply) => [memory, reply] as const),
      })
      if ((options.idleUnloadMs ?? 0) > 0 && !model.entry.runtime.pinned)
        yield* Effect.forkScoped(model.idleWatch(options.idleUnloadMs ?? 0))
      return model
    })
  }

  private get entry(): ModelEntry {
    return this.deployed.entry
  }

  /** The deployment that it was last loaded with, or will be loaded with. */
  get deployment(): Deployment {
    return this.deployed
  }

  /** Whether an operator has unloaded it. */
  get isHeld(): boolean {
    return this.held
  }

  /** Takes over a deployment that differs only in what an engine is not started with. */
  amend(deployment: Deployment): void {
    this.deployed = deployment
  }

  /** It has been removed or replaced. From now on it is neither evicted nor unloaded for being idle: it ends anyway. */
  leave(): void {
    this.leaving = true
  }

  /** Makes a reload wait: for work of several requests that need the same engine. */
  get hold(): Effect.Effect<void, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => void this.holds++),
      () => Effect.sync(() => void this.holds--),
    )
  }

  /** Keeps it loaded between requests that follow within seconds: it is neither evicted nor unloaded for being idle. */
  get keep(): Effect.Effect<void, never, Scope.Scope> {
    return Effect.acquireRelease(
      Effect.sync(() => void this.keeps++),
      () => Effect.sync(() => void this.keeps--),
    )
  }

  /** Whether nothing runs on it, waits for it or holds it. */
  isQuiet(): boolean {
    if (this.wanted > 0 || this.holds > 0) return false
    const gauges = this.host?.gauges()
    return gauges === undefined || (gauges.open === 0 && gauges.waiting === 0)
  }

  /** Bytes that it claims of a device, until they are given back. */
  claimedBytes(deviceId: string): number {
    return this.claim?.counts() === true ? (this.claim.held().get(deviceId) ?? 0) : 0
  }

  /** The facts of its engine, once it has loaded. */
  facts(): Facts<K> | undefined {
    return this.host?.facts
  }

  /** Whether other requests need its engine, see SlotScheduler. */
  isContended(user: string): boolean {
    return this.host?.requests.isContended(user) ?? false
  }

  view(): ModelSnapshot {
    const { entry, meters } = this
    const host: HostView | undefined = this.host
    const { lastFailure, status, timings } = this.standing
    return { entry, status, host, lastFailure, timings, meters, output: this.news.output }
  }

  /** What unloading it would free on a device; undefined while it is used, pinned or not loaded. */
  evictable(deviceId: string): Evictable | undefined {
    const sizeBytes = this.claimedBytes(deviceId)
    if (sizeBytes === 0 || this.entry.runtime.pinned || !this.isIdle()) return undefined
    return { id: this.entry.id, sizeBytes, reloadMs: this.standing.timings.loadMs ?? 0 }
  }

  /** An operator's or the node's own load. */
  load(force: boolean): Effect.Effect<Facts<EngineKind>, LoadError> {
    return Effect.suspend(() => {
      this.held = false
      return this.ask<Facts<EngineKind>, LoadError>(new Load(force))
    })
  }

  /**
   * An operator's unload: requests get `Model not loaded` until it is loaded again. Ends a load that is under way, and
   * forgets which users were there at crashes.
   */
  get unload(): Effect.Effect<Unloaded, ModelUnavailable | UnloadFailed> {
    return Effect.suspend(() => {
      this.held = true
      this.suspects = new CrashSuspects()
      if (this.abandonLoad !== undefined)
        Deferred.doneUnsafe(this.abandonLoad, Effect.fail(this.standing.unavailable()))
      return this.ask<Unloaded, ModelUnavailable | UnloadFailed>(new Unload())
    })
  }

  /** Unloads it if no request uses it; the next request loads it again. `forModel` is the one that needs its memory. */
  retire(forModel?: string): Effect.Effect<boolean> {
    return Effect.orElseSucceed(this.ask<boolean, never>(new Retire(forModel)), () => false)
  }

  /** Runs one request, see `Run`. Loads the model first, unless an operator has unloaded it. */
  run(
    request: Request<K>,
    listener: Listener<K>,
    options: RunOptions = {},
  ): Effect.Effect<End<K>, RunError | ModelNotLoaded> {
    return Effect.suspend((): Effect.Effect<End<K>, RunError | ModelNotLoaded> => {
      const { host } = this
      // While an engine restarts, its host keeps the queue: the request waits there.
      if (host !== undefined && this.standing.status !== "failed")
        return host.requests.run(request, listener, options)
      if (this.held) return Effect.fail(new ModelNotLoaded({ model: this.entry.id }))
      if (this.standing.reviveInMs() > 0) return Effect.fail(this.standing.unavailable())
      this.wanted++
      return this.ask<Facts<EngineKind>, LoadError>(new Load(false)).pipe(
        Effect.mapError((error) => (this.held ? new ModelNotLoaded({ model: this.entry.id }) : error)),
        Effect.flatMap((): Effect.Effect<End<K>, RunError | ModelNotLoaded> => {
          if (this.host !== undefined) return this.host.requests.run(request, listener, options)
          return Effect.fail(
            this.held ? new ModelNotLoaded({ model: this.entry.id }) : this.standing.unavailable(),
          )
        }),
        Effect.ensuring(Effect.sync(() => this.wanted--)),
      )
    })
  }

  private ask<A, E>(message: Message<A, E> & ModelMessage): Effect.Effect<A, E | ModelUnavailable> {
    if (this.ref === undefined) return Effect.fail(this.standing.unavailable())
    return (this.ref.ask(message) as Effect.Effect<A, E | { readonly _tag: string }>).pipe(
      Effect.mapError((error) => {
        const { _tag } = error as { readonly _tag: string }
        return _tag === "ActorStopped" || _tag === "MailboxFull" ? this.standing.unavailable() : (error as E)
      }),
    )
  }

  private handle(memory: InMemory, message: ModelMessage): Effect.Effect<unknown, LoadError | UnloadFailed> {
    switch (message._tag) {
      case "Unload":
        return Effect.tap(this.release(memory), ({ freedBytes, tookMs, was }) =>
          Effect.sync(() => (was ? this.news.unloaded("operator", freedBytes, tookMs) : undefined)),
        )
      case "Retire":
        // Checked and unloaded in one step: a later request finds no host and sends a Load.
        return Effect.suspend(() =>
          this.isIdle() && !this.entry.runtime.pinned
            ? Effect.match(this.release(memory), {
                onSuccess: ({ freedBytes, tookMs }) => {
                  if (message.forModel === undefined) this.news.unloaded("idle", freedBytes, tookMs)
                  else this.news.evicted(message.forModel)
                  return true
                },
                onFailure: () => false,
              })
            : Effect.succeed(false),
        )
      case "Discard":
        return Effect.suspend(() => {
          const { scope } = memory
          if (this.standing.status !== "failed" || scope === undefined) return Effect.void
          memory.scope = undefined
          this.host = undefined
          return Scope.close(scope, Exit.void)
        })
      case "Load":
        // An unload was requested after this load: the later request wins.
        if (this.held) return Effect.fail(this.standing.unavailable())
        if (this.standing.status === "loaded" && !message.force && this.host?.facts !== undefined)
          return Effect.succeed(this.host.facts)
        // A process that an unload could not end is replaced as well.
        return Effect.andThen(Effect.ignore(this.release(memory)), this.bringIn(memory))
    }
  }

  private readonly bringIn = Effect.fnUntraced({ self: this }, function* (this: Model<K>, memory: InMemory) {
    this.beganMs = performance.now()
    const scope = yield* Scope.make()
    const abandon = Deferred.makeUnsafe<never, ModelUnavailable>()
    // Before the first pause: an unload that arrives now has to find it.
    this.abandonLoad = abandon
    const exit = yield* Effect.gen({ self: this }, function* () {
      yield* this.findWeights(Deferred.await(abandon))
      const { entry, files } = this.deployed
      // This may take minutes: it waits for the memory of models that a reload has removed or replaced.
      const claiming = claimRoom(this.device, this.deployed, this.options).pipe(
        Effect.tap((granted) =>
          Effect.sync(() => {
            this.claim = granted
          }),
        ),
      )
      const grant = yield* Effect.raceFirst(claiming, Deferred.await(abandon))
      memory.scope = scope
      this.standing.move("load")
      this.news.placed(grant)
      const { machine } = this.device.threads
      const narrows = wantsSecond(this.deployed, machine) && (yield* claimSecond(this.device, this.deployed))
      const terms = threadTerms(this.deployed, machine, this.keptThreads, narrows)
      if (terms.problem !== undefined) this.news.threadsLimited(terms.problem)
      const member = yield* Effect.acquireRelease(
        Effect.sync(() => this.device.threads.join((threads) => this.host?.limitThreads(threads))),
        ({ leave }) => Effect.sync(leave),
      )
      this.news.loading()
      const host = yield* EngineHost.make({
        kind: this.kind,
        entry,
        spec: {
          modelId: entry.id,
          adapter: entry.adapter,
          files,
          options: entry.options,
          ...terms.spec,
        },
        environment: grant.environment,
        onWork: member.works,
        onThreads: (choice) => {
          member.wants(mostOf(choice))
          if (terms.key !== undefined && choice.source === "measured")
            this.keptThreads.keep(terms.key, choice)
        },
        holdsBackground: this.options.holdsBackground ?? (() => false),
        meters: this.meters,
        output: this.news.output,
        suspects: this.suspects,
        onEvent: (event) => {
          // Events of an engine that is being ended do not concern the one that follows it.
          if (this.host === host) this.onHostEvent(event)
        },
      })
      this.host = host
      const facts = yield* Effect.raceFirst(host.loaded, Deferred.await(abandon))
      const { pid, residentBytes } = host.gauges()
      yield* grant.settle(pid, residentBytes)
      return facts
    }).pipe(
      Scope.provide(scope),
      // The model may go away while it loads; `memory` does not know of the scope before the claim is granted.
      Effect.onInterrupt(() => Scope.close(scope, Exit.void)),
      Effect.exit,
    )
    this.abandonLoad = undefined
    if (Exit.isSuccess(exit)) {
      this.standing.loaded(performance.now() - this.beganMs)
      return exit.value
    }
    const refusal = exit.cause.reasons.find(Cause.isFailReason)?.error
    if (refusal?._tag === "InsufficientMemory") {
      yield* Scope.close(scope, Exit.void)
      this.news.refused(refusal)
      this.standing.lastFailure = `${Math.ceil(refusal.wantedBytes / 1024 ** 2)} MB do not fit on ${refusal.device}`
      return yield* refusal
    }
    if (Deferred.isDoneUnsafe(abandon)) {
      // Abandoned before the claim was seen: it may have been granted all the same.
      if (memory.scope === undefined) yield* Scope.close(scope, Exit.void)
      yield* Effect.ignore(this.release(memory))
      return yield* this.standing.unavailable()
    }
    if (this.standing.status !== "failed") {
      const reason = exceptionReason(Cause.squash(exit.cause))
      this.standing.fail(reason)
      this.news.loadFailed(reason)
    }
    yield* Scope.close(scope, Exit.void)
    memory.scope = undefined
    this.host = undefined
    return yield* this.standing.unavailable()
  })

  /**
   * Weights may have been pulled, mended, moved or replaced since the last load. The entry stays the one that is deployed.
   * What is wrong with them fails the load like an engine that refuses them.
   */
  private readonly findWeights = Effect.fnUntraced(
    { self: this },
    function* (this: Model<K>, abandoned: Effect.Effect<never, ModelUnavailable>) {
      const { relocate } = this.options
      if (relocate !== undefined && !this.leaving) {
        const located = yield* Effect.raceFirst(relocate(this.entry), abandoned)
        this.deployed = { ...located, entry: this.entry }
      }
      const why = lackOf(this.deployed)
      if (why === undefined) return
      // Finding that nothing was pulled yet costs nothing; finding that a file is wrong may mean reading all of it.
      const again = this.deployed.problem === undefined
      // Each request to a model that is not pulled checks again; it is logged once.
      if (!again || this.standing.lastFailure !== why) this.news.loadFailed(why)
      this.standing.lack(why, again)
      return yield* this.standing.unavailable()
    },
  )

  /** Ends the process and checks that its memory is free. */
  private release(memory: InMemory): Effect.Effect<Unloaded, UnloadFailed> {
    return Effect.suspend(() => {
      const { claim, host } = this
      const { scope } = memory
      const beganMs = performance.now()
      const beforeBytes = host?.heldBytes() ?? 0
      const pid = host?.gauges().pid
      memory.scope = undefined
      this.host = undefined
      if (scope === undefined) {
        this.standing.move("unloaded")
        return Effect.succeed(nothingUnloaded)
      }
      return Effect.gen({ self: this }, function* () {
        yield* Scope.close(scope, Exit.void)
        const heldBytes = (host?.heldBytes() ?? 0) + (yield* heldOnGpu(this.device, claim, pid))
        if (heldBytes > 0) {
          this.standing.stick(heldBytes)
          this.news.notUnloaded(heldBytes)
          return yield* new UnloadFailed({ model: this.entry.id, heldBytes })
        }
        const tookMs = performance.now() - beganMs
        this.standing.unloaded(tookMs, beforeBytes)
        return { was: true, freedBytes: beforeBytes, tookMs }
      })
    })
  }

  private isIdle(): boolean {
    if (this.leaving || this.standing.status !== "loaded" || this.wanted > 0 || this.keeps > 0) return false
    const gauges = this.host?.gauges()
    return gauges !== undefined && gauges.open === 0 && gauges.waiting === 0
  }

  /** Unloads the model when it has had no request for `idleMs`. */
  private idleWatch(idleMs: number): Effect.Effect<never> {
    return Effect.gen({ self: this }, function* () {
      for (;;) {
        const idleSinceMs = this.host?.idleSinceMs()
        const dueInMs = idleSinceMs === undefined ? idleMs : idleSinceMs + idleMs - performance.now()
        if (dueInMs > 0) yield* Effect.sleep(dueInMs)
        else if (this.isIdle()) yield* this.retire()
        else yield* Effect.sleep(idleMs)
      }
    })
  }

  private onHostEvent({ detail, event }: HostEvent): void {
    switch (event) {
      case "ready": {
        this.standing.lastFailure = ""
        this.standing.move("ready")
        const { residentBytes = 0, restarts = 0 } = this.host?.gauges() ?? {}
        const tookMs = performance.now() - this.beganMs
        return this.news.ready(detail, tookMs, residentBytes, restarts, this.host?.threads)
      }
      case "crashed":
      case "hung":
        this.beganMs = performance.now()
        this.standing.lastFailure = this.news.withCause(detail)
        return this.news.engine({ event, detail: this.standing.lastFailure })
      case "restarting":
        this.standing.move("crashed")
        return this.news.engine({ event, detail })
      case "gave-up": {
        const why = `${detail}; the last time: ${this.standing.lastFailure}`
        this.standing.fail(why)
        this.news.engine({ event, detail: why })
        return void this.ref?.tell(new Discard())
      }
      case "refused":
        this.standing.fail(detail)
        this.news.engine({ event, detail })
        return void this.ref?.tell(new Discard())
    }
  }
}

/** A model whose kind is not known to the caller; `kind` tells it. */
export type AnyModel = { readonly [K in EngineKind]: Model<K> }[EngineKind]
