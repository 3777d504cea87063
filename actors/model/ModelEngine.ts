// What a model has in memory: brings its engine in and takes it out again, and follows what happens to the engine meanwhile. It is
// the state of the Model actor, which alone calls `load`, `release` and `discard`, one at a time.
import { Cause, Deferred, Effect, Exit, Scope } from "effect"
import { CrashSuspects } from "#domain/models/CrashSuspects.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import type { OperatorLine } from "#domain/process/OperatorLog.ts"
import { exceptionReason } from "#domain/process/PlainLine.ts"
import { mostOf } from "#domain/threads/ThreadChoice.ts"
import { type ModelUnavailable, UnloadFailed } from "#domain/wire/Errors.ts"
import type { EngineKind, Facts } from "#engines/protocol/Verbs.ts"
import type { Device, Grant } from "../device/Device.ts"
import { EngineHost } from "../engine/EngineHost.ts"
import type { HostEvent } from "../engine/HostOptions.ts"
import { ModelMeters } from "../engine/ModelMeters.ts"
import type { ThreadResults } from "../threads/KeptThreads.ts"
import { lackOf } from "./DeploymentChange.ts"
import { claimMemory, claimSecond, heldOnGpu } from "./MemoryClaim.ts"
import type { LoadError, Unloaded } from "./ModelMessages.ts"
import { ModelNews } from "./ModelNews.ts"
import { type ModelOptions, ModelState } from "./ModelState.ts"
import { threadTerms, wantsSecond } from "./ThreadTerms.ts"

const nothingUnloaded: Unloaded = { was: false, freedBytes: 0, tookMs: 0 }

interface Parts {
  readonly options: ModelOptions
  readonly device: Device["Service"]
  readonly keptThreads: ThreadResults
  readonly say: (line: OperatorLine) => void
  /** The engine was given up: what is left of it has to be discarded. */
  readonly onGivenUp: () => void
}

export class ModelEngine<K extends EngineKind> {
  readonly kind: K
  readonly #parts: Parts
  readonly #options: ModelOptions
  readonly #device: Device["Service"]
  readonly meters: ModelMeters
  readonly standing: ModelState
  readonly news: ModelNews
  deployed: Deployment
  host: EngineHost<K> | undefined
  /** Where its weights are looked for again before a load; false once another model, or none, answers under its id. */
  relocates = true
  /** Of what is in memory, if anything is. */
  #scope: Scope.Closeable | undefined
  /** The last claim; it counts until its process has ended. */
  #claim: Grant | undefined
  #suspects = new CrashSuspects()
  /** When the load or restart under way began. */
  #beganMs = 0
  /** Ends the load under way, if one is. */
  #abandonLoad: Deferred.Deferred<never, ModelUnavailable> | undefined

  constructor(kind: K, parts: Parts) {
    const { options } = parts
    this.kind = kind
    this.#parts = parts
    this.#options = options
    this.#device = parts.device
    this.deployed = options.deployment
    this.news = new ModelNews(this.entry, parts.say, options.output)
    this.meters = options.meters ?? new ModelMeters()
    this.standing = new ModelState(this.entry.id, this.meters, options.onStatus)
  }

  get entry(): ModelEntry {
    return this.deployed.entry
  }

  /** Bytes that it claims of a device, until they are given back. */
  claimedBytes(deviceId: string): number {
    return this.#claim?.counts() === true ? (this.#claim.held().get(deviceId) ?? 0) : 0
  }

  /** Whether its engine has no request; false while it has no engine. */
  isIdle(): boolean {
    const gauges = this.host?.gauges()
    return gauges !== undefined && gauges.open === 0 && gauges.waiting === 0
  }

  /** Ends a load that is under way, and forgets which users were there at crashes. */
  abandon(): void {
    this.#suspects = new CrashSuspects()
    if (this.#abandonLoad !== undefined)
      Deferred.doneUnsafe(this.#abandonLoad, Effect.fail(this.standing.unavailable()))
  }

  /** Brings the model into memory, in place of what is there. */
  load(): Effect.Effect<Facts<K>, LoadError> {
    // A process that an unload could not end is replaced as well.
    return Effect.andThen(Effect.ignore(this.release()), this.#bringIn())
  }

  readonly #bringIn = Effect.fnUntraced({ self: this }, function* (this: ModelEngine<K>) {
    this.#beganMs = performance.now()
    const scope = yield* Scope.make()
    const abandon = Deferred.makeUnsafe<never, ModelUnavailable>()
    // Before the first pause: an unload that arrives now has to find it.
    this.#abandonLoad = abandon
    const exit = yield* Effect.gen({ self: this }, function* () {
      yield* this.#findWeights(Deferred.await(abandon))
      const { entry, files, parts } = this.deployed
      // This may take minutes: it waits for the memory of models that a reload has removed or replaced.
      const claiming = claimMemory(this.#device, this.deployed, this.#options).pipe(
        Effect.tap((granted) =>
          Effect.sync(() => {
            this.#claim = granted
          }),
        ),
      )
      const grant = yield* Effect.raceFirst(claiming, Deferred.await(abandon))
      this.#scope = scope
      this.standing.move("load")
      this.news.placed(grant)
      const { machine } = this.#device.threads
      const narrows = wantsSecond(this.deployed, machine) && (yield* claimSecond(this.#device, this.deployed))
      const terms = threadTerms(this.deployed, machine, this.#parts.keptThreads, narrows)
      if (terms.problem !== undefined) this.news.threadsLimited(terms.problem)
      const member = yield* Effect.acquireRelease(
        Effect.sync(() => this.#device.threads.join((threads) => this.host?.limitThreads(threads))),
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
        ...(parts === undefined ? {} : { parts }),
        environment: grant.environment,
        onWork: member.works,
        onThreads: (choice) => {
          member.wants(mostOf(choice))
          if (terms.key !== undefined && choice.source === "measured")
            this.#parts.keptThreads.keep(terms.key, choice)
        },
        holdsBackground: this.#options.holdsBackground ?? (() => false),
        meters: this.meters,
        output: this.news.output,
        suspects: this.#suspects,
        onEvent: (event) => {
          // Events of an engine that is being ended do not concern the one that follows it.
          if (this.host === host) this.#onHostEvent(event)
        },
      })
      this.host = host
      const facts = yield* Effect.raceFirst(host.loaded, Deferred.await(abandon))
      const { pid, residentBytes } = host.gauges()
      yield* grant.settle(pid, residentBytes)
      return facts
    }).pipe(
      Scope.provide(scope),
      // The model may go away while it loads; `this.scope` is not set before the claim is granted.
      Effect.onInterrupt(() => Scope.close(scope, Exit.void)),
      Effect.exit,
    )
    this.#abandonLoad = undefined
    if (Exit.isSuccess(exit)) {
      this.standing.loaded(performance.now() - this.#beganMs)
      return exit.value
    }
    const refusal = exit.cause.reasons.find(Cause.isFailReason)?.error
    if (refusal?._tag === "InsufficientMemory") {
      yield* Scope.close(scope, Exit.void)
      this.news.refused(refusal)
      this.standing.lastFailure = `${Math.ceil(refusal.wantedBytes / 1024 ** 2)} MB do not fit on ${refusal.device}`
      return yield* refusal
    }
    if (refusal?._tag === "DeviceLost") {
      yield* Scope.close(scope, Exit.void)
      const why = `no memory can be claimed of ${refusal.deviceName}: its part of the node has crashed or given up (edgewise tree)`
      this.standing.lack(why, false)
      this.news.loadFailed(why)
      return yield* this.standing.unavailable()
    }
    if (Deferred.isDoneUnsafe(abandon)) {
      // Abandoned before the claim was seen: it may have been granted all the same.
      if (this.#scope === undefined) yield* Scope.close(scope, Exit.void)
      yield* Effect.ignore(this.release())
      return yield* this.standing.unavailable()
    }
    if (this.standing.status !== "failed") {
      const reason = exceptionReason(Cause.squash(exit.cause))
      this.standing.fail(reason)
      this.news.loadFailed(reason)
    }
    yield* Scope.close(scope, Exit.void)
    this.#scope = undefined
    this.host = undefined
    return yield* this.standing.unavailable()
  })

  /**
   * Weights may have been pulled, mended, moved or replaced since the last load. The entry stays the one that is deployed.
   * What is wrong with them fails the load like an engine that refuses them.
   */
  readonly #findWeights = Effect.fnUntraced(
    { self: this },
    function* (this: ModelEngine<K>, abandoned: Effect.Effect<never, ModelUnavailable>) {
      const { relocate } = this.#options
      if (relocate !== undefined && this.relocates) {
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
  release(): Effect.Effect<Unloaded, UnloadFailed> {
    return Effect.suspend(() => {
      const claim = this.#claim
      const scope = this.#scope
      const { host } = this
      const beganMs = performance.now()
      const beforeBytes = host?.heldBytes() ?? 0
      const pid = host?.gauges().pid
      this.#scope = undefined
      this.host = undefined
      if (scope === undefined) {
        this.standing.move("unloaded")
        return Effect.succeed(nothingUnloaded)
      }
      return Effect.gen({ self: this }, function* () {
        yield* Scope.close(scope, Exit.void)
        const heldBytes = (host?.heldBytes() ?? 0) + (yield* heldOnGpu(this.#device, claim, pid))
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

  /** Gives back what is still claimed for an engine that was given up. */
  discard(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const scope = this.#scope
      if (this.standing.status !== "failed" || scope === undefined) return Effect.void
      this.#scope = undefined
      this.host = undefined
      return Scope.close(scope, Exit.void)
    })
  }

  #onHostEvent({ detail, event }: HostEvent): void {
    switch (event) {
      case "ready": {
        this.standing.lastFailure = ""
        this.standing.move("ready")
        const { residentBytes = 0, restarts = 0 } = this.host?.gauges() ?? {}
        const tookMs = performance.now() - this.#beganMs
        return this.news.ready(detail, tookMs, residentBytes, restarts, this.host?.threads)
      }
      case "crashed":
      case "hung":
        this.#beganMs = performance.now()
        this.standing.lastFailure = this.news.withCause(detail)
        return this.news.engine({ event, detail: this.standing.lastFailure })
      case "restarting":
        this.standing.move("crashed")
        return this.news.engine({ event, detail })
      case "gave-up": {
        const why = `${detail}; the last time: ${this.standing.lastFailure}`
        this.standing.fail(why)
        this.news.engine({ event, detail: why })
        return this.#parts.onGivenUp()
      }
      case "refused":
        this.standing.fail(detail)
        this.news.engine({ event, detail })
        return this.#parts.onGivenUp()
    }
  }
}
