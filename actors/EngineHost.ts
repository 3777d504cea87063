// Owns one model's engine: starts its process, hands it requests, notices its death, starts it again.
// Requests enter through `run`, from any fiber; what an engine sends is passed on by plain calls on the event loop.
// Knows nothing of HTTP or accounts. The Model actor makes one host per load and closes its scope to unload.

import { Deferred, Effect, Schema, type Scope } from "effect"
import {
  AtCapacity,
  EngineFailed,
  type InsufficientMemory,
  InvalidRequest,
  type MemoryPressure,
  ModelUnavailable,
  PromptTooLong,
} from "#domain/Errors.ts"
import type { ModelEntry } from "#domain/Model.ts"
import type { EngineFacts, EngineKind, EngineSpec } from "#engines/Engine.ts"
import { EventKind, type FromEngine, type RequestId, type WireError } from "#engines/Wire.ts"
import * as EngineProcess from "./EngineProcess.ts"
import { ModelMeters } from "./ModelMeters.ts"
import { privateBytesOf, residentBytesOf } from "./ResidentMemory.ts"
import { supervise } from "./Supervisor.ts"
import * as Tree from "./Tree.ts"
import { WaitingLine } from "./WaitingLine.ts"

/** Lets a slow reader hold its own producer, and nobody else's. */
export interface Flow {
  readonly pause: () => void
  readonly resume: () => void
}

/** Called on the event loop as the engine's messages arrive; must be quick and must not throw. */
export interface Listener<Started, Unit> {
  readonly started: (facts: Started, flow: Flow) => void
  readonly unit: (unit: Unit) => void
}

export type RunError =
  | AtCapacity
  | EngineFailed
  | InsufficientMemory
  | InvalidRequest
  | MemoryPressure
  | ModelUnavailable
  | PromptTooLong

export interface RunOptions {
  /** Lets those who wait in person go first. */
  readonly background?: boolean
  /** Whose request it is: users take turns in the waiting line. */
  readonly user?: string
  /** Part of work that was admitted before: it goes on when new work is refused. */
  readonly continues?: boolean
}

export interface HostOptions {
  readonly entry: ModelEntry
  readonly spec: EngineSpec
  /** Variables that the engine's process needs. */
  readonly environment: Readonly<Record<string, string>>
  /** Whether background work has to wait at present. */
  readonly holdsBackground: () => boolean
  readonly onEvent: (event: HostEvent) => void
  /** Where its work is counted; they outlive it. */
  readonly meters?: ModelMeters
}

/** What the host tells its Model actor; never awaited, so a busy actor cannot hold up an engine. */
export type HostEvent = { readonly event: "ready" | "crashed" | "gave-up"; readonly detail: string }

export interface HostGauges {
  readonly open: number
  readonly waiting: number
  readonly slots: number
  readonly restarts: number
  readonly residentBytes: number
  readonly pid: number | undefined
  /** Longest time between a request's cancelling and its slot being free, milliseconds. */
  readonly slowestCancelMs: number
}

/** Steps between two acknowledgements: an eighth of what an engine may have on its way. */
const acknowledgeEvery = 32

class EngineDied extends Schema.TaggedError<EngineDied>()("EngineDied", {
  reason: Schema.Literals(["crashed", "hung"]),
  detail: Schema.String,
}) {}

interface Job {
  readonly request: unknown
  readonly user: string
  /** Work that nobody is waiting for in person: it leaves a slot free for those who do. */
  readonly background: boolean
  readonly listener: Listener<unknown, unknown>
  readonly resume: (exit: Effect.Effect<unknown, RunError>) => void
  /** Set while the engine has it. */
  id: RequestId | undefined
  readonly askedAtMs: number
  openedAtMs: number
  /** When its last unit came; 0 before the first. */
  unitAtMs: number
  /** Set once nobody listens any more. */
  cancelledAtMs: number | undefined
}

export class EngineHost {
  private readonly options: HostOptions
  private readonly entry: ModelEntry
  private readonly line: WaitingLine<Job>
  private readonly meters: ModelMeters
  private readonly open = new Map<RequestId, Job>()
  private readonly firstAnswer = Deferred.makeUnsafe<EngineFacts, ModelUnavailable>()
  private nextId: RequestId = 1
  private process: EngineProcess.EngineProcess | undefined
  private ready = false
  private finished = false
  private lastHeardMs = 0
  private restarts = 0
  /** Steps dealt with that the engine has not been told of. */
  private unacknowledged = 0
  private residentBytes = 0
  private slowestCancelMs = 0
  private backgroundStartedMs = Number.NEGATIVE_INFINITY
  private lastUsedMs = performance.now()
  kind: EngineKind | undefined
  facts: EngineFacts | undefined

  private constructor(options: HostOptions) {
    this.options = options
    this.entry = options.entry
    this.meters = options.meters ?? new ModelMeters()
    this.line = new WaitingLine(options.entry.runtime.waitingLine)
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
      open: this.open.size,
      waiting: this.line.length,
      slots: this.facts?.slots ?? 0,
      restarts: this.restarts,
      residentBytes: this.residentBytes,
      pid: this.process?.pid,
      slowestCancelMs: this.slowestCancelMs,
    }
  }

  /** When it last had anything to do; undefined while it has. */
  idleSinceMs(): number | undefined {
    return this.open.size === 0 && this.line.length === 0 ? this.lastUsedMs : undefined
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

  /**
   * Runs one request to its end. Waits for a slot in the model's bounded line; interruption leaves the line, or
   * cancels in the engine and returns at once, the slot being free when the engine has confirmed.
   */
  run<Started, Unit, End>(
    request: unknown,
    listener: Listener<Started, Unit>,
    { background = false, user = "" }: RunOptions = {},
  ): Effect.Effect<End, RunError> {
    return Effect.callback<unknown, RunError>((resume) => {
      if (this.finished) return resume(Effect.fail(this.unavailable()))
      const job: Job = {
        request,
        user,
        background,
        listener: listener as Listener<unknown, unknown>,
        resume,
        id: undefined,
        askedAtMs: performance.now(),
        openedAtMs: 0,
        unitAtMs: 0,
        cancelledAtMs: undefined,
      }
      if (this.canOpen() && (!background || this.backgroundAllowed())) this.start(job)
      else {
        const joined = this.line.join(job, user, background)
        if (!joined.taken || joined.displaced !== undefined) this.meters.outcomes.refused++
        if (!joined.taken) return resume(Effect.fail(this.atCapacity(user)))
        joined.displaced?.resume(Effect.fail(this.atCapacity(joined.displaced.user)))
      }
      return Effect.sync(() => this.abandon(job))
    }) as Effect.Effect<End, RunError>
  }

  private atCapacity(user: string): AtCapacity {
    const retryAfterMs = this.line.retryAfterMs(this.facts?.slots ?? 1, user)
    return new AtCapacity({ model: this.entry.id, retryAfterMs })
  }

  private unavailable(): ModelUnavailable {
    return new ModelUnavailable({ model: this.entry.id, retryAfterMs: Tree.reviveAfterMs })
  }

  private canOpen(): boolean {
    return this.ready && this.open.size < (this.facts?.slots ?? 0)
  }

  /**
   * Background work begins while nobody is served in person, and once a while all the same, or it would never end on a
   * busy node. It may hold all slots but one, and one where there is no other.
   */
  private backgroundAllowed(): boolean {
    if (this.options.holdsBackground()) return false
    let background = 0
    for (const job of this.open.values()) if (job.background) background++
    const inPerson = this.open.size - background
    if (inPerson > 0 && performance.now() - this.backgroundStartedMs < Tree.backgroundPatienceMs) return false
    return background < Math.max(1, (this.facts?.slots ?? 1) - 1)
  }

  private start(job: Job): void {
    const id = this.nextId++
    job.id = id
    job.openedAtMs = performance.now()
    if (job.background) this.backgroundStartedMs = job.openedAtMs
    else this.meters.queueWaitMs.record(job.openedAtMs - job.askedAtMs)
    this.open.set(id, job)
    this.process?.send({ t: "open", id, request: job.request })
  }

  private pump(): void {
    while (this.canOpen()) {
      const job = this.line.shift(this.backgroundAllowed())
      if (job === undefined) return
      this.start(job)
    }
  }

  private abandon(job: Job): void {
    if (this.line.leave(job)) {
      this.meters.outcomes.cancelled++
      return
    }
    if (job.id === undefined || !this.open.has(job.id)) return
    job.cancelledAtMs = performance.now()
    this.process?.send({ t: "cancel", id: job.id })
  }

  /** One event of one request. A request that was cancelled here keeps its slot until its end arrives. */
  private onRequestEvent(id: RequestId, kind: EventKind, data: unknown): void {
    const job = this.open.get(id)
    if (job === undefined) return
    const wanted = job.cancelledAtMs === undefined
    if (kind === EventKind.unit) {
      if (!wanted) return
      this.unitCame(job)
      job.listener.unit(data)
      return
    }
    if (kind === EventKind.started) {
      if (!wanted) return
      const flow: Flow = {
        pause: () => this.process?.send({ t: "pause", id }),
        resume: () => this.process?.send({ t: "resume", id }),
      }
      job.listener.started(data, flow)
      return
    }
    this.open.delete(id)
    const nowMs = performance.now()
    this.lastUsedMs = nowMs
    this.line.observe(nowMs - job.openedAtMs)
    if (job.cancelledAtMs !== undefined) {
      this.slowestCancelMs = Math.max(this.slowestCancelMs, nowMs - job.cancelledAtMs)
      this.meters.cancelToIdleMs.record(nowMs - job.cancelledAtMs)
      this.meters.outcomes.cancelled++
    } else if (kind === EventKind.end) {
      this.meters.outcomes.done++
      job.resume(Effect.succeed(data))
    } else {
      this.meters.outcomes.failed++
      job.resume(Effect.fail(this.toRunError(data as WireError)))
    }
    this.pump()
  }

  /** Once a step and request, with the time that the step's message came: no look at a clock of its own. */
  private unitCame(job: Job): void {
    const nowMs = this.lastHeardMs
    // Several units of one message are one to whoever waits for them.
    if (job.unitAtMs === nowMs) return
    if (job.unitAtMs > 0) this.meters.unitGapMs.record(nowMs - job.unitAtMs)
    else if (!job.background) this.meters.firstUnitMs.record(nowMs - job.askedAtMs)
    job.unitAtMs = nowMs
  }

  private toRunError(error: WireError): RunError {
    switch (error.reason) {
      case "InvalidInput":
        return new InvalidRequest({ field: error.field, problem: error.detail })
      case "PromptTooLong":
        return new PromptTooLong({
          field: error.field,
          promptTokens: error.promptTokens ?? 0,
          contextTokens: error.contextTokens ?? 0,
        })
      default:
        return new EngineFailed({ model: this.entry.id, reason: "failed", detail: error.detail })
    }
  }

  private failOpen(reason: EngineFailed["reason"], detail: string): void {
    const jobs = [...this.open.values()]
    this.open.clear()
    for (const job of jobs) {
      this.meters.outcomes[job.cancelledAtMs === undefined ? "failed" : "cancelled"]++
      if (job.cancelledAtMs !== undefined) continue
      job.resume(Effect.fail(new EngineFailed({ model: this.entry.id, reason, detail })))
    }
  }

  private finish(reason: EngineFailed["reason"], detail: string): void {
    if (this.finished) return
    this.finished = true
    this.ready = false
    this.failOpen(reason, detail)
    for (const job of this.line.clear()) {
      this.meters.outcomes.failed++
      job.resume(Effect.fail(this.unavailable()))
    }
    Deferred.doneUnsafe(this.firstAnswer, Effect.fail(this.unavailable()))
  }

  private onMessage(message: FromEngine, loadFailed: (error: WireError) => void): void {
    this.lastHeardMs = performance.now()
    switch (message.t) {
      case "step": {
        const { events } = message
        if (++this.unacknowledged === acknowledgeEvery) {
          this.process?.send({ t: "ack", steps: this.unacknowledged })
          this.unacknowledged = 0
        }
        for (let i = 0; i + 2 < events.length; i += 3) {
          const id = events[i] as RequestId
          const kind = events[i + 1] as EventKind
          if (kind === EventKind.text) {
            this.onRequestEvent(id, EventKind.unit, { text: events[i + 2], completionTokens: events[i + 3] })
            i++
          } else this.onRequestEvent(id, kind, events[i + 2])
        }
        return
      }
      case "loaded":
        this.kind = message.kind
        this.facts = message.facts
        this.residentBytes = message.residentBytes
        this.ready = true
        this.lastHeardMs = performance.now()
        this.lastUsedMs = this.lastHeardMs
        this.options.onEvent({ event: "ready", detail: message.facts.summary })
        Deferred.doneUnsafe(this.firstAnswer, Effect.succeed(message.facts))
        return this.pump()
      case "load-failed":
        return loadFailed(message.error)
      case "pong":
        this.residentBytes = message.residentBytes
        // Background work that was held back for a while is nobody's event.
        return this.pump()
    }
  }

  /** Pings on a quarter of the deadline and ends when the engine has been silent for all of it. */
  private readonly heartbeat: Effect.Effect<EngineDied> = Effect.gen({ self: this }, function* () {
    const { hangDeadlineMs, loadDeadlineMs } = this.entry.runtime
    const startedMs = performance.now()
    this.lastHeardMs = startedMs
    for (let n = 0; ; n++) {
      this.process?.send({ t: "ping", n })
      yield* Effect.sleep(Math.min(2_000, hangDeadlineMs / 4, loadDeadlineMs / 4))
      const nowMs = performance.now()
      // Loading is one long native call; how long it may take depends on the disk, so it has a deadline of its own.
      const silentMs = nowMs - (this.ready ? this.lastHeardMs : startedMs)
      if (silentMs > (this.ready ? hangDeadlineMs : loadDeadlineMs)) {
        return new EngineDied({ reason: "hung", detail: `silent for ${Math.round(silentMs)} ms` })
      }
    }
  })

  /** One engine process from start to death. Succeeds only when the weights were refused, which no restart cures. */
  private readonly incarnation: Effect.Effect<WireError, EngineDied> = Effect.gen(
    { self: this },
    function* () {
      const refused = yield* Deferred.make<WireError>()
      const start = yield* EngineProcess.EngineStarter
      const process = yield* start({
        isolation: this.entry.runtime.isolation,
        environment: this.options.environment,
        onMessage: (message) =>
          this.onMessage(message, (error) => Deferred.doneUnsafe(refused, Effect.succeed(error))),
      })
      this.process = process
      this.unacknowledged = 0
      process.send({ t: "load", spec: this.options.spec })
      const crashed = Effect.map(
        process.exited,
        ({ code, signal }) =>
          new EngineDied({
            reason: "crashed",
            detail: signal === null ? `exit status ${code}` : `signal ${signal}`,
          }),
      )
      const end = yield* Effect.raceFirst(Deferred.await(refused), Effect.raceFirst(crashed, this.heartbeat))
      if (!(end instanceof EngineDied)) return end
      this.ready = false
      this.failOpen(end.reason, end.detail)
      if (end.reason === "hung") process.kill()
      return yield* end
    },
  ).pipe(Effect.scoped)

  private readonly life: Effect.Effect<void> = Effect.suspend(() =>
    this.incarnation.pipe(
      supervise(`engine ${this.entry.id}`, Tree.engineHost, (_cause, nth) =>
        Effect.sync(() => {
          this.restarts++
          this.meters.restarts++
          this.options.onEvent({ event: "crashed", detail: `restart ${nth}` })
        }),
      ),
      Effect.matchEffect({
        onSuccess: (refusal) => Effect.sync(() => this.giveUp(refusal.detail)),
        onFailure: (error) => Effect.sync(() => this.giveUp(`${error.restarts} restarts in the window`)),
      }),
    ),
  )

  private giveUp(detail: string): void {
    this.finish("crashed", detail)
    this.options.onEvent({ event: "gave-up", detail })
  }
}
