// What a model has in memory: brings its engine in and takes it out again. The state of the model is not here but in ModelState, which
// decides when either is done, and never both at a time; Model calls it.
import { Effect, Exit, Schema, Scope } from "effect"
import { CrashSuspects } from "#domain/models/CrashSuspects.ts"
import type { Deployment } from "#domain/models/Deployment.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import type { OperatorLine } from "#domain/process/OperatorLog.ts"
import { mostOf } from "#domain/threads/ThreadChoice.ts"
import type { InsufficientMemory, ModelUnavailable } from "#domain/wire/Errors.ts"
import type { EngineKind } from "#engines/protocol/Verbs.ts"
import type { Device, Grant } from "../device/Device.ts"
import { EngineHost } from "../engine/EngineHost.ts"
import type { EngineOutput } from "../engine/EngineOutput.ts"
import { ModelMeters } from "../engine/ModelMeters.ts"
import { lackOf } from "./DeploymentChange.ts"
import { type ClaimOptions, claimMemory, claimSecond, heldOnGpu } from "./MemoryClaim.ts"
import { ModelNews } from "./ModelNews.ts"
import type { Event, Unloaded } from "./ModelState.ts"
import { type Kept, threadTerms, wantsSecond } from "./ThreadTerms.ts"

/** What a model is made with. */
export interface ModelOptions extends ClaimOptions {
  readonly deployment: Deployment
  /** Finds the weights of an entry as they are now; called before each load. Absent: they stay where they were. */
  readonly relocate?: (entry: ModelEntry) => Effect.Effect<Deployment>
  /** Counters of the model that this one replaces, which go on counting. */
  readonly meters?: ModelMeters
  /** Output of the model that this one replaces, which goes on in the same way. */
  readonly output?: EngineOutput
  /** True where the model that this one replaces was unloaded by an operator. */
  readonly held?: boolean
  /** Without a request for this long it is unloaded; 0 never. */
  readonly idleUnloadMs?: number
  /** Whether background work has to wait at present. */
  readonly holdsBackground?: () => boolean
}

/** No engine could be started, or none that could load. */
export class NotBroughtIn extends Schema.TaggedError<NotBroughtIn>()("NotBroughtIn", {
  reason: Schema.String,
  /** See NotLoaded. */
  again: Schema.Boolean,
}) {}

interface Parts {
  readonly options: ModelOptions
  readonly device: Device["Service"]
  readonly kept: Kept
  readonly say: (line: OperatorLine) => void
  /** What happens to the engine while it is brought in or there. */
  readonly tell: (event: Event & { readonly is: "placed" | "engine" }) => void
}

export class ModelEngine<K extends EngineKind> {
  readonly kind: K
  readonly #parts: Parts
  readonly #options: ModelOptions
  readonly #device: Device["Service"]
  readonly meters: ModelMeters
  readonly news: ModelNews
  deployed: Deployment
  host: EngineHost<K> | undefined
  /** True once another model, or none, answers under its id: its weights are where they were. */
  isLeaving = false
  /** Of what is in memory, if anything is. */
  #scope: Scope.Closeable | undefined
  /** The last claim; it counts until its process has ended. */
  #claim: Grant | undefined
  #suspects = new CrashSuspects()

  constructor(kind: K, parts: Parts) {
    const { options } = parts
    this.kind = kind
    this.#parts = parts
    this.#options = options
    this.#device = parts.device
    this.deployed = options.deployment
    this.news = new ModelNews(this.entry, parts.say, options.output)
    this.meters = options.meters ?? new ModelMeters()
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

  /** Forgets which users had requests in engines that crashed. */
  forgetCrashes(): void {
    this.#suspects = new CrashSuspects()
  }

  /** Starts an engine and waits until it has loaded. However it ends, `takeOut` takes out what there is of it. */
  bringIn(): Effect.Effect<void, InsufficientMemory | ModelUnavailable | NotBroughtIn> {
    return Effect.gen({ self: this }, function* () {
      const scope = yield* Scope.make()
      this.#scope = scope
      yield* this.#findWeights
      yield* Scope.provide(this.#startEngine(), scope)
    })
  }

  /**
   * Weights may have been pulled, mended, moved or replaced since the last load. The entry stays the one that is deployed.
   * What is wrong with them fails the load like an engine that refuses them.
   */
  get #findWeights(): Effect.Effect<void, NotBroughtIn> {
    const { relocate } = this.#options
    const finding: Effect.Effect<Pick<Deployment, "files" | "sizeBytes">> =
      relocate === undefined || this.isLeaving ? Effect.succeed(this.deployed) : relocate(this.entry)
    return Effect.flatMap(finding, (located) => {
      this.deployed = { ...located, entry: this.entry }
      const reason = lackOf(this.deployed)
      // Finding that nothing was pulled yet costs nothing; finding that a file is wrong may mean reading all of it.
      const again = this.deployed.problem === undefined
      return reason === undefined ? Effect.void : Effect.fail(new NotBroughtIn({ reason, again }))
    })
  }

  readonly #startEngine = Effect.fnUntraced({ self: this }, function* (this: ModelEngine<K>) {
    const { entry, files, parts } = this.deployed
    // This may take minutes: it waits for the memory of models that a reload has removed or replaced.
    const grant = yield* Effect.catchTag(
      claimMemory(this.#device, this.deployed, this.#options),
      "DeviceLost",
      ({ deviceName }) =>
        Effect.fail(
          new NotBroughtIn({
            reason: `no memory can be claimed of ${deviceName}: its part of the node has crashed or given up (edgewise tree)`,
            again: false,
          }),
        ),
    )
    this.#claim = grant
    this.news.placed(grant)
    this.#parts.tell({ is: "placed" })
    const { machine } = this.#device.threads
    const narrows = wantsSecond(this.deployed, machine) && (yield* claimSecond(this.#device, this.deployed))
    const { kept } = this.#parts
    const terms = threadTerms(this.deployed, machine, kept, narrows)
    if (terms.problem !== undefined) this.news.threadsLimited(terms.problem)
    const member = yield* Effect.acquireRelease(
      Effect.sync(() => this.#device.threads.join((threads) => this.host?.limitThreads(threads))),
      ({ leave }) => Effect.sync(leave),
    )
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
      // Detection works for a millisecond thirty times a second: others would change their threads each time.
      ...(this.kind === "detection" ? {} : { onWork: member.works }),
      onThreads: (choice) => {
        member.wants(mostOf(choice))
        if (terms.key !== undefined && choice.source === "measured") kept.threads.keep(terms.key, choice)
      },
      onCosts: (costs) => {
        if (terms.costsKey !== undefined) kept.costs.keep(terms.costsKey, costs)
      },
      holdsBackground: this.#options.holdsBackground ?? (() => false),
      meters: this.meters,
      output: this.news.output,
      suspects: this.#suspects,
      onEvent: ({ detail, event }) => {
        // Events of an engine that is being ended do not concern the one that follows it.
        if (this.host !== host) return
        const isDeath = event === "crashed" || event === "hung"
        this.#parts.tell({ is: "engine", event, detail: isDeath ? this.news.withCause(detail) : detail })
      },
    })
    this.host = host
    yield* host.loaded
    const { pid, residentBytes } = host.gauges()
    yield* grant.settle(pid, residentBytes)
  })

  /** Ends the process and checks that its memory is free. From this call on, no request finds the engine. */
  takeOut(): Effect.Effect<Unloaded & { readonly heldBytes: number }> {
    const claim = this.#claim
    const scope = this.#scope
    const { host } = this
    const beganMs = performance.now()
    const freedBytes = host?.heldBytes() ?? 0
    const pid = host?.gauges().pid
    this.#scope = undefined
    this.host = undefined
    return Effect.gen({ self: this }, function* () {
      if (scope !== undefined) yield* Scope.close(scope, Exit.void)
      const heldBytes = (host?.heldBytes() ?? 0) + (yield* heldOnGpu(this.#device, claim, pid))
      return { was: host !== undefined, freedBytes, heldBytes, tookMs: performance.now() - beganMs }
    })
  }
}
