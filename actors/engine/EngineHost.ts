// Owns one model's engine: starts its process, detects its end, starts it again. Requests go through `requests`, its
// SlotScheduler, from any fiber. Knows nothing of HTTP or accounts. The Model actor makes one host per load and closes
// its scope to unload.

import { type Cause, Deferred, Effect, type Scope } from "effect"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { isOnProcessor } from "#domain/models/Placement.ts"
import type { CallCosts } from "#domain/threads/CallCosts.ts"
import { mostOf, narrowThreads, type ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import { type EngineFailed, ModelUnavailable } from "#domain/wire/Errors.ts"
import { adapterFacts } from "#engines/AdapterFacts.ts"
import type { EngineSpec } from "#engines/protocol/Engine.ts"
import type { FromEngine, WireError } from "#engines/protocol/EngineProtocol.ts"
import type { EngineKind, Facts } from "#engines/protocol/Verbs.ts"
import { type ChildEnd, type Self, startChild } from "../Child.ts"
import { privateBytesOf, residentBytesOf } from "../device/ResidentMemory.ts"
import * as Limits from "../Limits.ts"
import * as Specifications from "../Specifications.ts"
import type { Details } from "../TreeNode.ts"
import { EngineDied, exited, gaveUpDetail, isExcused, restartDetail } from "./EngineDied.ts"
import { limitMemory } from "./EngineMemoryLimit.ts"
import * as EngineProcess from "./EngineProcess.ts"
import { Heartbeat } from "./Heartbeat.ts"
import type { HostGauges, HostOptions } from "./HostOptions.ts"
import { ModelMeters } from "./ModelMeters.ts"
import { SlotScheduler } from "./SlotScheduler.ts"

/** Steps between two acknowledgements: an eighth of the most that may be unacknowledged (`mostUnacknowledged` in OpenRequests). */
const acknowledgeEvery = 32

export class EngineHost<K extends EngineKind> {
  readonly kind: K
  readonly #options: HostOptions<K>
  readonly #entry: ModelEntry
  readonly #meters: ModelMeters
  /** Runs requests on the engine. */
  readonly requests: SlotScheduler<K>
  readonly #firstAnswer = Deferred.makeUnsafe<Facts<K>, ModelUnavailable>()
  #self: Self | undefined
  #process: EngineProcess.EngineProcess<K> | undefined
  #finished = false
  readonly #heartbeat: Heartbeat
  #restarts = 0
  /** Step messages processed but not yet acknowledged to the engine (flow control). */
  #unacknowledged = 0
  #residentBytes = 0
  /** Facts of the engine, once one has loaded. */
  facts: Facts<K> | undefined
  /** CPU threads, as the engine chose them when it loaded. */
  threads: ThreadChoice | undefined
  /** Durations of its native calls, once an engine has measured them. */
  #costs: CallCosts | undefined
  /** The last limit of its CPU threads; undefined while it may use all. */
  #mostThreads: number | undefined

  private constructor(options: HostOptions<K>) {
    this.kind = options.kind
    this.#options = options
    this.#entry = options.entry
    this.#meters = options.meters ?? new ModelMeters()
    this.#heartbeat = new Heartbeat(
      options.entry.runtime,
      (n) => this.#process?.send({ type: "ping", n }),
      () => this.#process?.pid,
    )
    this.requests = new SlotScheduler({
      kind: options.kind,
      entry: options.entry,
      meters: this.#meters,
      ...(options.suspects === undefined ? {} : { suspects: options.suspects }),
      holdsBackground: options.holdsBackground,
      ...(options.onWork === undefined ? {} : { onWork: options.onWork }),
      send: (message) => this.#process?.send(message),
    })
  }

  /** Starts loading at once; `loaded` gives the result. Closing the scope unloads and frees the memory. */
  static make<K extends EngineKind>(
    options: HostOptions<K>,
  ): Effect.Effect<EngineHost<K>, never, Scope.Scope> {
    const host = new EngineHost(options)
    return Effect.gen(function* () {
      yield* startChild({
        ...Specifications.engine,
        name: `engine ${host.#entry.id}`,
        run: (self) => host.#incarnation(self),
        onRestart: (cause, nth) => host.#restarting(cause, nth),
        counts: (cause) => !isExcused(cause),
        onEnd: (end) => Effect.sync(() => host.#ended(end)),
      })
      // Registered last, so it runs first: waiting requests fail before the process is stopped.
      yield* Effect.addFinalizer(() => Effect.sync(() => host.#finish("unloaded", "the model was unloaded")))
      return host
    })
  }

  /** The engine's facts once it has loaded, or why it has not. */
  get loaded(): Effect.Effect<Facts<K>, ModelUnavailable> {
    return Deferred.await(this.#firstAnswer)
  }

  gauges(): HostGauges {
    return {
      ...this.requests.gauges(),
      slots: this.facts?.slots ?? 0,
      restarts: this.#restarts,
      residentBytes: this.#residentBytes,
      pid: this.#process?.pid,
    }
  }

  /** When its last request ended; undefined while it has requests. */
  idleSinceMs(): number | undefined {
    return this.requests.idleSinceMs()
  }

  /** Resident bytes of its process at this moment, read from the system; 0 once it has ended. */
  heldBytes(): number {
    const process = this.#process
    if (process === undefined || process.hasExited()) return 0
    // A thread's memory is part of the node's: its last report is used.
    return process.pid === undefined ? Math.max(1, this.#residentBytes) : residentBytesOf(process.pid)
  }

  /** Resident bytes not backed by a mapped file (RssAnon). 0 for a thread: its memory is counted with the node's. */
  privateBytes(): number {
    const process = this.#process
    return process?.pid === undefined || process.hasExited() ? 0 : privateBytesOf(process.pid)
  }

  /** Sends the engine the order to drop its caches, or to use them again. */
  lean(on: boolean): void {
    this.#process?.send({ type: "lean", on })
  }

  /** Its engine, and the ones that follow it after a crash, use no more CPU threads than this. */
  limitThreads(most: number): void {
    this.#mostThreads = most
    this.#process?.send({ type: "threads", most })
  }

  /** Whether its engine chooses its CPU threads by measuring them. */
  choosesThreads(): boolean {
    return (this.#options.spec.trial?.counts.length ?? 1) > 1
  }

  /** CPU threads that it may use at this moment; 0 before it has loaded. */
  threadsNow(): number {
    const entry = this.#entry
    const mostThreads = this.#mostThreads
    const options = this.#options
    const { threads } = this
    if (threads === undefined) return 0
    const all = mostOf(threads)
    if (threads.source === "catalog" || mostThreads === undefined || mostThreads >= all) return all
    if (adapterFacts[entry.adapter]?.threads?.measured === "weights") return mostThreads
    return options.spec.trial?.narrows === true ? narrowThreads(all) : all
  }

  #unavailable(): ModelUnavailable {
    return new ModelUnavailable({ model: this.#entry.id, retryAfterMs: Limits.reviveAfterMs })
  }

  #finish(reason: EngineFailed["reason"], detail: string): void {
    if (this.#finished) return
    this.#finished = true
    this.#heartbeat.ready = false
    this.requests.finish(reason, detail)
    Deferred.doneUnsafe(this.#firstAnswer, Effect.fail(this.#unavailable()))
  }

  #onMessage(message: FromEngine<K>, loadFailed: (error: WireError) => void): void {
    const nowMs = performance.now()
    this.#heartbeat.received(nowMs)
    switch (message.type) {
      case "step": {
        if (++this.#unacknowledged === acknowledgeEvery) {
          this.#process?.send({ type: "ack", steps: this.#unacknowledged })
          this.#unacknowledged = 0
        }
        this.requests.onStep(message, nowMs)
        return
      }
      case "loaded":
        // All later messages are read as those of this kind.
        if (message.kind !== this.kind) {
          const detail = `the adapter is for a ${message.kind} model, and the catalog has a ${this.kind} model`
          return loadFailed({ reason: "LoadFailed", field: "", detail })
        }
        this.facts = message.facts
        this.threads = message.threads
        this.#residentBytes = message.residentBytes
        this.#heartbeat.ready = true
        this.#self?.ready()
        this.requests.begin(
          message.facts.slots,
          nowMs,
          "prepares" in message.facts && message.facts.prepares === true,
        )
        if (this.#process?.pid !== undefined && isOnProcessor(this.#entry))
          limitMemory(this.#process.pid, { secondCopy: this.#options.spec.trial?.narrows === true })
        this.#options.onEvent({ event: "ready", detail: message.facts.summary })
        this.#options.onThreads?.(message.threads)
        Deferred.doneUnsafe(this.#firstAnswer, Effect.succeed(message.facts))
        return this.requests.pump()
      case "opening":
        this.#heartbeat.opening = message.on
        return
      case "threads":
        this.threads = message.threads
        return this.#options.onThreads?.(message.threads)
      case "costs":
        this.#costs = message.costs
        return this.#options.onCosts?.(message.costs)
      case "load-failed":
        return loadFailed(message.error)
      case "pong":
        this.#residentBytes = message.residentBytes
        // No event announces that a held-back background request may start, so the heartbeat also pumps the queue.
        return this.requests.pump()
    }
  }

  /** What the tree shows of it. Its queue is the scheduler's: a request reaches the engine without a mailbox. */
  readonly #details: Details = {
    mailbox: () => ({ depth: this.requests.gauges().waiting, bound: this.#entry.runtime.waitingLine }),
    holds: () => ({
      memoryBytes: this.heldBytes(),
      threads: this.threadsNow(),
      requests: this.requests.gauges().open,
    }),
  }

  /** After a crash with what the engine before it has measured. */
  #specNow(): EngineSpec {
    const costs = this.#costs
    const spec = costs === undefined ? this.#options.spec : { ...this.#options.spec, costs }
    if (spec.trial === undefined || this.threads?.source !== "measured") return spec
    return { ...spec, trial: { ...spec.trial, kept: { ...this.threads, source: "kept" } } }
  }

  /** One engine process from start to end. Succeeds only if the weights were refused, which a restart does not change. */
  readonly #incarnation = (self: Self): Effect.Effect<WireError, EngineDied, Scope.Scope> =>
    Effect.gen({ self: this }, function* () {
      this.#self = self
      self.node.details = this.#details
      const refused = yield* Deferred.make<WireError>()
      const start = yield* EngineProcess.EngineStarter
      const printed = this.#options.output?.open()
      const process = yield* start<K>({
        isolation: this.#entry.runtime.isolation,
        environment: this.#options.environment,
        onOutput: (stream, chunk) => printed?.take(stream, chunk),
        files: [...Object.values(this.#options.spec.files), ...(this.#options.parts ?? [])],
        onMessage: (message) =>
          this.#onMessage(message, (error) => Deferred.doneUnsafe(refused, Effect.succeed(error))),
      })
      this.#process = process
      this.#unacknowledged = 0
      process.send({ type: "load", spec: this.#specNow() })
      if (this.#mostThreads !== undefined) process.send({ type: "threads", most: this.#mostThreads })
      const crashed = Effect.map(process.exited, exited)
      const end = yield* Effect.raceFirst(
        Deferred.await(refused),
        Effect.raceFirst(crashed, this.#heartbeat.watch),
      )
      printed?.end()
      if (!(end instanceof EngineDied)) return end
      this.#heartbeat.ready = false
      const { detail, ofRequest, reason } = end
      const counts = this.requests.crash(reason, detail, ofRequest)
      this.#options.onEvent({ event: reason, detail })
      if (reason === "hung") process.kill()
      return yield* new EngineDied({ reason, detail, ofRequest, counts })
    })

  #restarting(cause: Cause.Cause<unknown>, nth: number): Effect.Effect<void> {
    return Effect.sync(() => {
      this.#restarts++
      this.#meters.restarts++
      this.#options.onEvent({ event: "restarting", detail: restartDetail(nth, isExcused(cause)) })
    })
  }

  #ended(end: ChildEnd<WireError, EngineDied>): void {
    if (end.reason === "finished") this.#giveUp("refused", end.value.detail)
    if (end.reason === "gave-up") this.#giveUp("gave-up", gaveUpDetail(end.restarts))
  }

  #giveUp(event: "refused" | "gave-up", detail: string): void {
    // First: `finish` resumes at once what waits for the load, and that reads why the load has failed.
    this.#options.onEvent({ event, detail })
    this.#finish("crashed", detail)
  }
}

/** The host of a model whose kind is not known to the caller; `kind` tells it. */
export type AnyHost = { readonly [K in EngineKind]: EngineHost<K> }[EngineKind]
