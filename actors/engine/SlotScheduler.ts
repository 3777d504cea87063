// The requests of one model's engine from arrival to end: which wait, which have a slot, what each listener is sent,
// and the model's counters. It is told when an engine is ready or has crashed, and gets the messages of engines. Knows
// nothing of processes. All of it runs in plain calls on the event loop.

import { Effect } from "effect"
import { CrashSuspects } from "#domain/models/CrashSuspects.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { NumberedMap } from "#domain/queues/UnorderedSet.ts"
import { type Place, type Urgency, WaitingLine } from "#domain/queues/WaitingLine.ts"
import { AtCapacity, EngineFailed, ModelUnavailable } from "#domain/wire/Errors.ts"
import type { EndEvent, RequestId, StartedEvent, Step, ToEngine } from "#engines/protocol/EngineProtocol.ts"
import { packings, type UnitReader } from "#engines/protocol/Packing.ts"
import { type End, type EngineKind, type Request, type Unit, verbs } from "#engines/protocol/Verbs.ts"
import * as Limits from "../Limits.ts"
import { type Flow, type Listener, type RunError, type RunOptions, runErrorOf } from "./EngineRequest.ts"
import type { ModelMeters } from "./ModelMeters.ts"

interface Job<K extends EngineKind> {
  readonly request: Request<K>
  readonly place: Place
  readonly listener: Listener<K>
  readonly resume: (exit: Effect.Effect<End<K>, RunError>) => void
  /** Set while the engine has it. */
  id: RequestId | undefined
  readonly askedAtMs: number
  openedAtMs: number
  /** When its last unit arrived; 0 before the first. */
  unitAtMs: number
  /** Set once its caller has cancelled it. */
  cancelledAtMs: number | undefined
  /** Whether its reader is too slow, so that the engine pauses it. */
  paused: boolean
}

/** From the most urgent to the least. */
const urgencies: ReadonlyArray<Urgency> = ["live", "interactive", "background"]

export interface SlotSchedulerOptions<K extends EngineKind> {
  readonly kind: K
  readonly entry: ModelEntry
  readonly meters: ModelMeters
  /** Users whose requests were open when the model's engines crashed. */
  readonly suspects?: CrashSuspects
  /** Whether background work has to wait at present. */
  readonly holdsBackground: () => boolean
  /** Sends to the present engine; dropped if there is none. */
  readonly send: (message: ToEngine<K>) => void
  /**
   * The most urgent request that the engine computes for has changed; undefined: there is none. Called before the
   * request is sent to the engine.
   */
  readonly onWork?: (urgency: Urgency | undefined) => void
}

export interface RequestGauges {
  readonly open: number
  readonly waiting: number
  /** Longest time between a request's cancelling and its slot being free, milliseconds. */
  readonly slowestCancelMs: number
}

export class SlotScheduler<K extends EngineKind> implements UnitReader<K> {
  private readonly options: SlotSchedulerOptions<K>
  private readonly verb: (typeof verbs)[K]
  private readonly readUnits: (typeof packings)[K]["read"]
  private readonly entry: ModelEntry
  private readonly meters: ModelMeters
  private readonly suspects: CrashSuspects
  private readonly line: WaitingLine<Job<K>>
  private readonly open = new NumberedMap<Job<K>>()
  /** Of the last engine that was ready. */
  private slots = 0
  private ready = false
  private finished = false
  private slowestCancelMs = 0
  private backgroundStartedMs = Number.NEGATIVE_INFINITY
  private interactiveStartedMs = Number.NEGATIVE_INFINITY
  /** When a live session last requested a slot. */
  private liveAskedMs = Number.NEGATIVE_INFINITY
  /** The interactive request that last had to wait for a slot. */
  private lastWaiting = { user: "", atMs: Number.NEGATIVE_INFINITY }
  private lastUsedMs = performance.now()
  /** The last argument of `onWork`. */
  private worksAt: Urgency | undefined

  constructor(options: SlotSchedulerOptions<K>) {
    this.options = options
    this.verb = verbs[options.kind]
    this.readUnits = packings[options.kind].read
    this.entry = options.entry
    this.meters = options.meters
    this.suspects = options.suspects ?? new CrashSuspects()
    this.line = new WaitingLine(options.entry.runtime.waitingLine)
  }

  gauges(): RequestGauges {
    return { open: this.open.size, waiting: this.line.length, slowestCancelMs: this.slowestCancelMs }
  }

  /** Whether a live session or another user needs the engine: then a long request should be short and repeated. */
  isContended(user: string): boolean {
    const { atMs, user: other } = this.lastWaiting
    const nowMs = performance.now()
    return (
      nowMs - this.liveAskedMs < Limits.contendedMs || (other !== user && nowMs - atMs < Limits.contendedMs)
    )
  }

  /** When it last had a request; undefined while it has one. */
  idleSinceMs(): number | undefined {
    return this.open.size === 0 && this.line.length === 0 ? this.lastUsedMs : undefined
  }

  /** An engine is ready and serves `slots` requests side by side; `pump` starts the first of them. */
  begin(slots: number, nowMs: number): void {
    this.slots = slots
    this.ready = true
    this.lastUsedMs = nowMs
  }

  /**
   * The engine has ended and its open requests fail; requests in the queue wait for the next engine.
   * @param ofRequest whether one of its requests may have caused it
   * @returns whether the crash counts against the engine, see CrashSuspects
   */
  crash(reason: EngineFailed["reason"], detail: string, ofRequest: boolean): boolean {
    const present = ofRequest ? this.open.values().map(({ place }) => place.user) : []
    const { counts } = this.suspects.crashed(present, performance.now())
    this.lose(reason, detail)
    return counts
  }

  private lose(reason: EngineFailed["reason"], detail: string): void {
    this.ready = false
    this.failOpen(reason, detail)
  }

  /** No engine follows: all requests fail, and so does every later one. */
  finish(reason: EngineFailed["reason"], detail: string): void {
    this.finished = true
    this.lose(reason, detail)
    for (const job of this.line.clear()) {
      this.meters.outcomes.failed++
      job.resume(Effect.fail(this.unavailable()))
    }
  }

  /** Starts the requests that may start now: a slot is free, or held-back background work is no longer held. */
  pump(): void {
    while (this.canOpen()) {
      const job = this.line.shift(
        {
          interactive: this.interactiveAllowed(),
          background: this.backgroundAllowed(),
          interactiveFirst: performance.now() - this.interactiveStartedMs >= Limits.interactivePatienceMs,
        },
        (waiting) => this.isHeld(waiting.place.user),
      )
      if (job === undefined) return
      const refusal = this.refusal(job.place.user)
      if (refusal === undefined) this.start(job)
      else {
        this.meters.outcomes.refused++
        job.resume(Effect.fail(refusal))
      }
    }
  }

  /**
   * Runs one request to its end, see `Run`. Waits for a slot in the model's bounded queue. Interruption leaves the queue, or
   * cancels in the engine and returns at once; the slot is free when the engine has confirmed.
   */
  run(
    request: Request<K>,
    listener: Listener<K>,
    { continues = false, urgency = "interactive", user = "" }: RunOptions = {},
  ): Effect.Effect<End<K>, RunError> {
    return Effect.callback<End<K>, RunError>((resume) => {
      if (this.finished) return resume(Effect.fail(this.unavailable()))
      const refusal = this.refusal(user)
      if (refusal !== undefined) {
        this.meters.outcomes.refused++
        return resume(Effect.fail(refusal))
      }
      const job: Job<K> = {
        request,
        place: { continues, urgency, user },
        listener,
        resume,
        id: undefined,
        askedAtMs: performance.now(),
        openedAtMs: 0,
        unitAtMs: 0,
        cancelledAtMs: undefined,
        paused: false,
      }
      if (urgency === "live") this.liveAskedMs = job.askedAtMs
      if (this.mayStart(urgency) && !this.isHeld(user)) this.start(job)
      else {
        if (urgency === "interactive") this.lastWaiting = { user, atMs: job.askedAtMs }
        const joined = this.line.join(job, job.place)
        if (!joined.taken || joined.displaced !== undefined) this.meters.outcomes.refused++
        if (!joined.taken) return resume(Effect.fail(this.atCapacity(user)))
        joined.displaced?.resume(Effect.fail(this.atCapacity(joined.displaced.place.user)))
        // All requests before it in the queue may be held back.
        if (!this.suspects.isEmpty) this.pump()
      }
      return Effect.sync(() => this.abandon(job))
    })
  }

  private atCapacity(user: string): AtCapacity {
    const retryAfterMs = this.line.retryAfterMs(Math.max(1, this.slots), user)
    return new AtCapacity({ model: this.entry.id, retryAfterMs })
  }

  private unavailable(): ModelUnavailable {
    return new ModelUnavailable({ model: this.entry.id, retryAfterMs: Limits.reviveAfterMs })
  }

  /** The refusal for a user that is refused for a while after crashes; undefined for all others. */
  private refusal(user: string): ModelUnavailable | undefined {
    if (this.suspects.isEmpty) return undefined
    const retryAfterMs = this.suspects.refusedForMs(user, performance.now())
    return retryAfterMs > 0 ? new ModelUnavailable({ model: this.entry.id, retryAfterMs }) : undefined
  }

  /** Two users on probation are not served at the same time. */
  private isHeld(user: string): boolean {
    if (this.suspects.isEmpty) return false
    const nowMs = performance.now()
    if (!this.suspects.isOnProbation(user, nowMs)) return false
    for (const { place } of this.open.values())
      if (place.user !== user && this.suspects.isOnProbation(place.user, nowMs)) return true
    return false
  }

  private canOpen(): boolean {
    return this.ready && this.open.size < this.slots
  }

  /** Whether a new request may start at once: a slot is free for its urgency, and no waiting request goes first. */
  private mayStart(urgency: Urgency): boolean {
    if (!this.canOpen()) return false
    if (urgency === "live") return true
    if (this.line.hasInteractive) return false
    return urgency === "interactive" ? this.interactiveAllowed() : this.backgroundAllowed()
  }

  private flow(job: Job<K>, id: RequestId, paused: boolean): void {
    job.paused = paused
    this.tellWork()
    this.options.send(paused ? { type: "pause", id } : { type: "resume", id })
  }

  private openOf(urgency: Urgency): number {
    let count = 0
    for (const job of this.open.values()) if (job.place.urgency === urgency) count++
    return count
  }

  /** Files leave one slot of several to live sessions while there are any: a caption must not wait for a file's window. */
  private interactiveAllowed(): boolean {
    if (this.slots === 1 || performance.now() - this.liveAskedMs > Limits.contendedMs) return true
    return this.open.size - this.openOf("live") < this.slots - 1
  }

  /**
   * Background work starts while no other request is served. On a busy node it still starts once in a while, or it would
   * never end. It may hold all slots but one, and the only one if there is no other.
   */
  private backgroundAllowed(): boolean {
    if (this.options.holdsBackground() || !this.interactiveAllowed()) return false
    const background = this.openOf("background")
    const others = this.open.size - background
    if (others > 0 && performance.now() - this.backgroundStartedMs < Limits.backgroundPatienceMs) return false
    return background < Math.max(1, this.slots - 1)
  }

  private start(job: Job<K>): void {
    const id = this.open.add(job)
    job.id = id
    job.openedAtMs = performance.now()
    const { urgency } = job.place
    if (urgency === "interactive") this.interactiveStartedMs = job.openedAtMs
    if (urgency === "background") this.backgroundStartedMs = job.openedAtMs
    else this.meters.queueWaitMs.record(job.openedAtMs - job.askedAtMs)
    this.tellWork()
    this.options.send({ type: this.verb, id, request: job.request })
  }

  private tellWork(): void {
    const { onWork } = this.options
    if (onWork === undefined) return
    let most: Urgency | undefined
    for (const { paused, place } of this.open.values())
      if (!paused && (most === undefined || urgencies.indexOf(place.urgency) < urgencies.indexOf(most)))
        most = place.urgency
    if (most === this.worksAt) return
    this.worksAt = most
    onWork(most)
  }

  private abandon(job: Job<K>): void {
    if (this.line.leave(job)) {
      this.meters.outcomes.cancelled++
      return
    }
    if (job.id === undefined || this.open.get(job.id) !== job) return
    job.cancelledAtMs = performance.now()
    this.options.send({ type: "cancel", id: job.id })
  }

  /** One step message of the engine, with the time when it arrived. */
  onStep({ ended, started, units }: Step<K>, nowMs: number): void {
    if (started !== undefined) for (const event of started) this.onStarted(event)
    if (units !== undefined) this.readUnits(units, this, nowMs)
    if (ended !== undefined) for (const event of ended) this.onEnd(event)
  }

  /** The request, unless it was cancelled here: then it keeps its slot until its end arrives, and its caller gets no events. */
  private wanted(id: RequestId): Job<K> | undefined {
    const job = this.open.get(id)
    return job?.cancelledAtMs === undefined ? job : undefined
  }

  private onStarted({ id, started }: StartedEvent<K>): void {
    const job = this.wanted(id)
    if (job === undefined) return
    const flow: Flow = {
      pause: () => this.flow(job, id, true),
      resume: () => this.flow(job, id, false),
    }
    job.listener.started(started, flow)
  }

  /** One unit of one request; called for every token. */
  onUnit(id: RequestId, unit: Unit<K>, atMs: number): void {
    const job = this.wanted(id)
    if (job === undefined) return
    this.recordUnit(job, atMs)
    job.listener.unit(unit)
  }

  private onEnd(event: EndEvent<K>): void {
    const job = this.open.get(event.id)
    if (job === undefined) return
    this.open.delete(event.id)
    this.tellWork()
    const nowMs = performance.now()
    this.lastUsedMs = nowMs
    this.line.observe(nowMs - job.openedAtMs)
    // Before the caller gets the end: a file requests its next window at once, and must not take the free slot from a
    // request that waits for it.
    this.pump()
    if (job.cancelledAtMs !== undefined) {
      this.slowestCancelMs = Math.max(this.slowestCancelMs, nowMs - job.cancelledAtMs)
      this.meters.cancelToIdleMs.record(nowMs - job.cancelledAtMs)
      this.meters.outcomes.cancelled++
    } else if (event.error === undefined) {
      this.meters.outcomes.done++
      job.resume(Effect.succeed(event.end))
    } else {
      this.meters.outcomes.failed++
      job.resume(Effect.fail(runErrorOf(this.entry.id, event.error)))
    }
  }

  /** Records the time between units, with the arrival time of the message: reading the clock for each unit would cost more. */
  private recordUnit(job: Job<K>, nowMs: number): void {
    // Several units of one request in one message arrive together and count as one.
    if (job.unitAtMs === nowMs) return
    if (job.unitAtMs > 0) this.meters.unitGapMs.record(nowMs - job.unitAtMs)
    else if (job.place.urgency !== "background") this.meters.firstUnitMs.record(nowMs - job.askedAtMs)
    job.unitAtMs = nowMs
  }

  private failOpen(reason: EngineFailed["reason"], detail: string): void {
    const jobs = this.open.values()
    this.open.clear()
    this.tellWork()
    for (const job of jobs) {
      this.meters.outcomes[job.cancelledAtMs === undefined ? "failed" : "cancelled"]++
      if (job.cancelledAtMs !== undefined) continue
      job.resume(Effect.fail(new EngineFailed({ model: this.entry.id, reason, detail })))
    }
  }
}
