// Owns one model's engine: starts its process, notices its death, starts it again. What is asked of the engine goes through
// SlotScheduler, from any fiber. Knows nothing of HTTP or accounts. The Model actor makes one host per load and closes
// its scope to unload.

import { Cause, Deferred, Effect, Schema, type Scope } from "effect"
import type { CrashSuspects } from "#domain/models/CrashSuspects.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { isOnProcessor } from "#domain/models/Placement.ts"
import type { Urgency } from "#domain/queues/WaitingLine.ts"
import { mostOf, narrowThreads, type ThreadChoice } from "#domain/threads/ThreadChoice.ts"
import { type EngineFailed, ModelUnavailable } from "#domain/wire/Errors.ts"
import { adapterFacts } from "#engines/AdapterFacts.ts"
import type { EngineFacts, EngineKind, EngineSpec } from "#engines/protocol/Engine.ts"
import type { FromEngine, WireError } from "#engines/protocol/EngineProtocol.ts"
import { privateBytesOf, residentBytesOf } from "../device/ResidentMemory.ts"
import { supervise } from "../Supervisor.ts"
import * as Tree from "../Tree.ts"
import { limitMemory } from "./EngineMemoryLimit.ts"
import type { EngineOutput } from "./EngineOutput.ts"
import * as EngineProcess from "./EngineProcess.ts"
import type { Listener, RunError, RunOptions } from "./EngineRequest.ts"
import { ModelMeters } from "./ModelMeters.ts"
import { type RequestGauges, SlotScheduler } from "./SlotScheduler.ts"

export interface HostOptions {
  readonly entry: ModelEntry
  readonly spec: EngineSpec
  /** Variables that the engine's process needs. */
  readonly environment: Readonly<Record<string, string>>
  /** Whether background work has to wait at present. */
  readonly holdsBackground: () => boolean
  readonly onEvent: (event: HostEvent) => void
  /** The engine has chosen its CPU threads: at each load, and again where the machine was too busy to measure. */
  readonly onThreads?: (choice: ThreadChoice) => void
  /** How urgent its most urgent running request is; undefined while it computes nothing. */
  readonly onWork?: (urgency: Urgency | undefined) => void
  /** Where its work is counted; they outlive it. */
  readonly meters?: ModelMeters
  /** Where what it prints is kept; outlives it too. */
  readonly output?: EngineOutput
  /** Whose requests its engines crashed over; outlives it too. */
  readonly suspects?: CrashSuspects
}

/**
 * What the host tells its Model actor; never awaited, so a busy actor cannot hold up an engine. `crashed` and `hung`: an
 * engine has ended, and `restarting` or `gave-up` follows. `refused`: the engine could not load the weights.
 */
export interface HostEvent {
  readonly event: "ready" | "crashed" | "hung" | "restarting" | "gave-up" | "refused"
  readonly detail: string
}

export interface HostGauges extends RequestGauges {
  readonly slots: number
  readonly restarts: number
  readonly residentBytes: number
  readonly pid: number | undefined
}

/** Steps between two acknowledgements: an eighth of what an engine may have on its way. */
const acknowledgeEvery = 32

class EngineDied extends Schema.TaggedError<EngineDied>()("EngineDied", {
  reason: Schema.Literals(["crashed", "hung"]),
  detail: Schema.String,
  /** Whether a request may have caused it. */
  ofRequest: Schema.Boolean,
  /** Whether it counts against the engine, see CrashSuspects. */
  counts: Schema.Boolean,
}) {}

/** Sent by an operator, or by the kernel where the machine's memory is full: no request's doing, as far as anybody can tell. */
const fromOutside: ReadonlySet<string> = new Set(["SIGKILL", "SIGTERM", "SIGINT", "SIGHUP"])

/** Whether the engine ended over requests of users who had ended it before. */
const isExcused = (cause: Cause.Cause<unknown>): boolean =>
  cause.reasons.some((one) => Cause.isFailReason(one) && one.error instanceof EngineDied && !one.error.counts)

const restartDetail = (nth: number, excused: boolean): string => {
  const allowed = `${Tree.engineHost.intensity} in ${Tree.engineHost.periodMs / 1000} s`
  return excused
    ? `a restart that is not counted towards the ${allowed}: a user of an earlier crash had a request in the engine`
    : `restart ${nth} of at most ${allowed}`
}

export class EngineHost {
  private readonly options: HostOptions
  private readonly entry: ModelEntry
  private readonly meters: ModelMeters
  private readonly requests: SlotScheduler
  private readonly firstAnswer = Deferred.makeUnsafe<EngineFacts, ModelUnavailable>()
  private process: EngineProcess.EngineProcess | undefined
  private ready = false
  private finished = false
  private lastHeardMs = 0
  /** The engine opens large files beside its requests. */
  private opening = false
  private restarts = 0
  /** Steps dealt with that the engine has not been told of. */
  private unacknowledged = 0
  private residentBytes = 0
  kind: EngineKind | undefined
  facts: EngineFacts | undefined
  /** CPU threads, as the engine chose them when it loaded. */
  threads: ThreadChoice | undefined
  /** The last limit of its CPU threads; undefined while it may use all. */
  private mostThreads: number | undefined

  private constructor(options: HostOptions) {
    this.options = options
    this.entry = options.entry
    this.meters = options.meters ?? new ModelMeters()
    this.requests = new SlotScheduler({
      entry: options.entry,
      meters: this.meters,
      ...(options.suspects === undefined ? {} : { suspects: options.suspects }),
      holdsBackground: options.holdsBackground,
      ...(options.onWork === undefined ? {} : { onWork: options.onWork }),
      send: (message) => this.process?.send(message),
    })
  }

  /** Starts loading at once; `loaded` tells how that went. Closing the scope unloads and frees the memory. */
  static make(options: HostOptions): Effect.Effect<EngineHost, never, Scope.Scope> {
    const host = new EngineHost(options)
    return Effect.gen(function* () {
      yield* Effect.forkScoped(host.life)
      // Registered last, so it runs first: those who wait are told before the process is stopped.
      yield* Effect.addFinalizer(() => Effect.sync(() => host.finish("unloaded", "the model was unloaded")))
      return host
    })
  }

  /** The engine's facts once it has loaded, or why it has not. */
  get loaded(): Effect.Effect<EngineFacts, ModelUnavailable> {
    return Deferred.await(this.firstAnswer)
  }

  gauges(): HostGauges {
    return {
      ...this.requests.gauges(),
      slots: this.facts?.slots ?? 0,
      restarts: this.restarts,
      residentBytes: this.residentBytes,
      pid: this.process?.pid,
    }
  }

  /** See SlotScheduler. */
  isContended(user: string): boolean {
    return this.requests.isContended(user)
  }

  /** When it last had anything to do; undefined while it has. */
  idleSinceMs(): number | undefined {
    return this.requests.idleSinceMs()
  }

  /** What its process holds at this moment, asked of the system; 0 once it has ended. */
  heldBytes(): number {
    const { process } = this
    if (process === undefined || process.hasExited()) return 0
    // A thread's memory is the node's own: what it last told has to do.
    return process.pid === undefined ? Math.max(1, this.residentBytes) : residentBytesOf(process.pid)
  }

  /** Those of them that no mapped file could give back; 0 for a thread, whose memory is the node's own. */
  privateBytes(): number {
    const { process } = this
    return process?.pid === undefined || process.hasExited() ? 0 : privateBytesOf(process.pid)
  }

  /** Tells the engine to do without caches, or that it may have them again. */
  lean(on: boolean): void {
    this.process?.send({ t: "lean", on })
  }

  /** Its engine, and the ones that follow it after a crash, use no more CPU threads than this. */
  limitThreads(most: number): void {
    this.mostThreads = most
    this.process?.send({ t: "threads", most })
  }

  /** CPU threads that it may use at this moment; 0 before it has loaded. */
  threadsNow(): number {
    const { entry, mostThreads, options, threads } = this
    if (threads === undefined) return 0
    const all = mostOf(threads)
    if (threads.source === "catalog" || mostThreads === undefined || mostThreads >= all) return all
    if (adapterFacts[entry.adapter]?.threads?.measured === "weights") return mostThreads
    return options.spec.trial?.narrows === true ? narrowThreads(all) : all
  }

  /** Runs one request to its end, see SlotScheduler. */
  run<Started, Unit, End>(
    request: unknown,
    listener: Listener<Started, Unit>,
    options: RunOptions = {},
  ): Effect.Effect<End, RunError> {
    return this.requests.run(request, listener, options)
  }

  private unavailable(): ModelUnavailable {
    return new ModelUnavailable({ model: this.entry.id, retryAfterMs: Tree.reviveAfterMs })
  }

  private finish(reason: EngineFailed["reason"], detail: string): void {
    if (this.finished) return
    this.finished = true
    this.ready = false
    this.requests.finish(reason, detail)
    Deferred.doneUnsafe(this.firstAnswer, Effect.fail(this.unavailable()))
  }

  private onMessage(message: FromEngine, loadFailed: (error: WireError) => void): void {
    this.lastHeardMs = performance.now()
    switch (message.t) {
      case "step": {
        if (++this.unacknowledged === acknowledgeEvery) {
          this.process?.send({ t: "ack", steps: this.unacknowledged })
          this.unacknowledged = 0
        }
        this.requests.onStep(message.events, this.lastHeardMs)
        return
      }
      case "loaded":
        this.kind = message.kind
        this.facts = message.facts
        this.threads = message.threads
        this.residentBytes = message.residentBytes
        this.ready = true
        this.lastHeardMs = performance.now()
        this.requests.begin(message.facts.slots, this.lastHeardMs)
        if (this.process?.pid !== undefined && isOnProcessor(this.entry)) limitMemory(this.process.pid)
        this.options.onEvent({ event: "ready", detail: message.facts.summary })
        this.options.onThreads?.(message.threads)
        Deferred.doneUnsafe(this.firstAnswer, Effect.succeed(message.facts))
        return this.requests.pump()
      case "opening":
        this.opening = message.on
        return
      case "threads":
        this.threads = message.threads
        return this.options.onThreads?.(message.threads)
      case "load-failed":
        return loadFailed(message.error)
      case "pong":
        this.residentBytes = message.residentBytes
        // Background work that was held back for a while is nobody's event.
        return this.requests.pump()
    }
  }

  /** Pings on a quarter of the deadline and ends when the engine has been silent for all of it. */
  private readonly heartbeat: Effect.Effect<EngineDied> = Effect.gen({ self: this }, function* () {
    const { hangDeadlineMs, loadDeadlineMs } = this.entry.runtime
    const startedMs = performance.now()
    this.lastHeardMs = startedMs
    this.opening = false
    for (let n = 0; ; n++) {
      this.process?.send({ t: "ping", n })
      yield* Effect.sleep(Math.min(2_000, hangDeadlineMs / 4, loadDeadlineMs / 4))
      const nowMs = performance.now()
      // Loading is one long native call; how long it may take depends on the disk, so it has a deadline of its own.
      const silentMs = nowMs - (this.ready ? this.lastHeardMs : startedMs)
      if (silentMs > (this.ready && !this.opening ? hangDeadlineMs : loadDeadlineMs)) {
        return new EngineDied({
          reason: "hung",
          detail: `silent for ${Math.round(silentMs)} ms`,
          ofRequest: true,
          counts: true,
        })
      }
    }
  })

  /** After a crash with what the engine before it has measured. */
  private specNow(): EngineSpec {
    const { spec } = this.options
    if (spec.trial === undefined || this.threads?.source !== "measured") return spec
    return { ...spec, trial: { ...spec.trial, kept: { ...this.threads, source: "kept" } } }
  }

  /** One engine process from start to death. Succeeds only when the weights were refused, which no restart cures. */
  private readonly incarnation: Effect.Effect<WireError, EngineDied> = Effect.gen(
    { self: this },
    function* () {
      const refused = yield* Deferred.make<WireError>()
      const start = yield* EngineProcess.EngineStarter
      const printed = this.options.output?.open()
      const process = yield* start({
        isolation: this.entry.runtime.isolation,
        environment: this.options.environment,
        onOutput: (stream, chunk) => printed?.take(stream, chunk),
        files: this.options.spec.files,
        onMessage: (message) =>
          this.onMessage(message, (error) => Deferred.doneUnsafe(refused, Effect.succeed(error))),
      })
      this.process = process
      this.unacknowledged = 0
      process.send({ t: "load", spec: this.specNow() })
      if (this.mostThreads !== undefined) process.send({ t: "threads", most: this.mostThreads })
      const crashed = Effect.map(
        process.exited,
        ({ code, signal }) =>
          new EngineDied({
            reason: "crashed",
            detail: signal === null ? `exit status ${code}` : `signal ${signal}`,
            ofRequest: signal === null || !fromOutside.has(signal),
            counts: true,
          }),
      )
      const end = yield* Effect.raceFirst(Deferred.await(refused), Effect.raceFirst(crashed, this.heartbeat))
      printed?.end()
      if (!(end instanceof EngineDied)) return end
      this.ready = false
      const { detail, ofRequest, reason } = end
      const counts = this.requests.crash(reason, detail, ofRequest)
      this.options.onEvent({ event: reason, detail })
      if (reason === "hung") process.kill()
      return yield* new EngineDied({ reason, detail, ofRequest, counts })
    },
  ).pipe(Effect.scoped)

  private readonly life: Effect.Effect<void> = Effect.suspend(() =>
    this.incarnation.pipe(
      supervise(
        `engine ${this.entry.id}`,
        Tree.engineHost,
        (cause, nth) =>
          Effect.sync(() => {
            this.restarts++
            this.meters.restarts++
            this.options.onEvent({ event: "restarting", detail: restartDetail(nth, isExcused(cause)) })
          }),
        (cause) => !isExcused(cause),
      ),
      Effect.matchEffect({
        onSuccess: (refusal) => Effect.sync(() => this.giveUp("refused", refusal.detail)),
        onFailure: ({ restarts }) =>
          Effect.sync(() => {
            const seconds = Tree.engineHost.periodMs / 1000
            this.giveUp("gave-up", `it ended ${restarts + 1} times within ${seconds} s`)
          }),
      }),
    ),
  )

  private giveUp(event: "refused" | "gave-up", detail: string): void {
    // First: completing what waits for the load resumes it at once, and it reads why the load has failed.
    this.options.onEvent({ event, detail })
    this.finish("crashed", detail)
  }
}
