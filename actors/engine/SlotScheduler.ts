// The requests of one model's engine from arrival to end: which wait, which have a slot, what each reader is sent,
// and the model's counters. EngineHost reports when an engine is ready or has crashed, and passes on the messages of
// engines. Processes are not handled here. All of it runs in plain calls on the event loop.

import { Effect } from "effect"
import { CrashSuspects } from "#domain/models/CrashSuspects.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { FairQueue, type Urgency } from "#domain/queues/FairQueue.ts"
import { NumberedMap } from "#domain/queues/UnorderedSet.ts"
import { AtCapacity, EngineFailed, ModelUnavailable } from "#domain/wire/Errors.ts"
import type {
  EndEvent,
  PreparedEvent,
  RequestId,
  StartedEvent,
  Step,
  ToEngine,
} from "#engines/protocol/EngineProtocol.ts"
import { packings, type UnitReader } from "#engines/protocol/Packing.ts"
import { preparationOf } from "#engines/protocol/Preparation.ts"
import type { Flow } from "#engines/protocol/Reader.ts"
import { type End, type EngineKind, type Request, type Unit, verbs } from "#engines/protocol/Verbs.ts"
import * as Limits from "../Limits.ts"
import { type RequestReader, type RunError, type RunOptions, runErrorOf } from "./EngineRequest.ts"
import type { ModelMeters } from "./ModelMeters.ts"
import {
  isPrepared,
  mostUrgent,
  type Preparing,
  type RequestGauges,
  recordUnit,
  type ScheduledRequest,
  scheduledRequest,
} from "./ScheduledRequest.ts"
import { SlotPolicy, slotsOf } from "./SlotPolicy.ts"

interface SlotSchedulerOptions<K extends EngineKind> {
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

export class SlotScheduler<K extends EngineKind> implements UnitReader<K> {
  readonly #options: SlotSchedulerOptions<K>
  readonly #verb: (typeof verbs)[K]
  readonly #readUnits: (typeof packings)[K]["read"]
  readonly #entry: ModelEntry
  readonly #meters: ModelMeters
  readonly #suspects: CrashSuspects
  readonly #queue: FairQueue<ScheduledRequest<K>>
  readonly #policy: SlotPolicy
  readonly #open = new NumberedMap<ScheduledRequest<K>>()
  /** Requests in the queue that the engine prepares or has prepared. */
  readonly #preparing = new NumberedMap<ScheduledRequest<K>>()
  /** Requests in the queue that wait for an engine to prepare them. */
  readonly #unprepared = new Set<ScheduledRequest<K>>()
  /** Whether the engine prepares requests; until one was ready that is not known, and they begin unprepared. */
  #prepares = false
  #finished = false
  #slowestCancelMs = 0
  #lastUsedMs = performance.now()
  /** The last argument of `onWork`. */
  #reportedWork: Urgency | undefined

  constructor(options: SlotSchedulerOptions<K>) {
    this.#options = options
    this.#verb = verbs[options.kind]
    this.#readUnits = packings[options.kind].read
    this.#entry = options.entry
    this.#meters = options.meters
    this.#suspects = options.suspects ?? new CrashSuspects()
    this.#policy = new SlotPolicy(this.#open, options.holdsBackground)
    this.#queue = new FairQueue(options.entry.runtime.waitingLine)
  }

  gauges(): RequestGauges {
    const { slots, taken } = this.#policy
    return {
      open: this.#open.size,
      busySlots: Math.min(taken, slots),
      waiting: this.#queue.length,
      slowestCancelMs: this.#slowestCancelMs,
    }
  }

  /** See SlotPolicy. */
  isContended(user: string): boolean {
    return this.#policy.isContended(user)
  }

  /** When it last had a request; undefined while it has one. */
  idleSinceMs(): number | undefined {
    return this.#open.size === 0 && this.#queue.length === 0 ? this.#lastUsedMs : undefined
  }

  /** An engine is ready and serves `slots` requests side by side; `pump` starts the first of them. */
  begin(slots: number, nowMs: number, prepares = false): void {
    this.#policy.slots = slots
    this.#policy.ready = true
    this.#prepares = prepares
    this.#lastUsedMs = nowMs
    for (const scheduled of this.#unprepared) this.#prepare(scheduled)
  }

  /**
   * The engine has ended and its open requests fail; requests in the queue wait for the next engine.
   * @param ofRequest whether one of its requests may have caused it
   * @returns whether the crash counts against the engine, see CrashSuspects
   */
  crash(reason: EngineFailed["reason"], detail: string, ofRequest: boolean): boolean {
    const preparing = this.#preparing.values().filter((scheduled) => !isPrepared(scheduled))
    const present = ofRequest ? [...this.#usersInEngine(), ...preparing.map(({ place }) => place.user)] : []
    const { counts } = this.#suspects.crashed(present, performance.now())
    this.#lose(reason, detail)
    return counts
  }

  /** No engine follows: all requests fail, and so does every later one. */
  finish(reason: EngineFailed["reason"], detail: string): void {
    this.#finished = true
    this.#lose(reason, detail)
    this.#unprepared.clear()
    for (const scheduled of this.#queue.clear()) {
      this.#meters.outcomes.failed++
      scheduled.resume(Effect.fail(this.#unavailable()))
    }
  }

  /** Starts the requests that may start now: a slot is free, or held-back background work is no longer held. */
  pump(): void {
    while (this.#policy.hasFreeSlot()) {
      const scheduled = this.#queue.shift(
        this.#policy.allowed(),
        (waiting) => !isPrepared(waiting) || this.#isHeld(waiting.place.user),
      )
      if (scheduled === undefined) return
      const refusal = this.#refusal(scheduled.place.user)
      if (refusal === undefined) this.#start(scheduled)
      else {
        this.#meters.outcomes.refused++
        this.#discard(scheduled)
        scheduled.resume(Effect.fail(refusal))
      }
    }
  }

  /**
   * Runs one request to its end, see `Run`. Waits for a slot in the model's bounded queue. Interruption leaves the queue, or
   * cancels in the engine and returns at once; the slot is free when the engine has confirmed.
   */
  run(
    request: Request<K>,
    reader: RequestReader<K>,
    { continues = false, organization = "", urgency = "interactive", user = "" }: RunOptions = {},
  ): Effect.Effect<End<K>, RunError> {
    return Effect.callback<End<K>, RunError>((resume) => {
      if (this.#finished) return resume(Effect.fail(this.#unavailable()))
      const refusal = this.#refusal(user)
      if (refusal !== undefined) {
        this.#meters.outcomes.refused++
        return resume(Effect.fail(refusal))
      }
      const slots = slotsOf[this.#options.kind](request)
      const preparation = this.#preparationOf(request, { organization, user })
      const place = { continues, urgency, user }
      const scheduled = scheduledRequest(request, slots, place, reader, resume, preparation)
      this.#policy.requested(urgency, scheduled.requestedAtMs)
      if (isPrepared(scheduled) && this.#mayStart(urgency) && !this.#isHeld(user)) this.#start(scheduled)
      else {
        this.#policy.waits(scheduled.place, scheduled.requestedAtMs)
        const joined = this.#queue.join(scheduled, scheduled.place)
        if (!joined.taken || joined.displaced !== undefined) this.#meters.outcomes.refused++
        if (!joined.taken) return resume(Effect.fail(this.#atCapacity(user)))
        if (joined.displaced !== undefined) {
          this.#discard(joined.displaced)
          joined.displaced.resume(Effect.fail(this.#atCapacity(joined.displaced.place.user)))
        }
        this.#prepare(scheduled)
        // All requests before it in the queue may be held back.
        if (!this.#suspects.isEmpty) this.pump()
      }
      return Effect.sync(() => this.#cancel(scheduled))
    })
  }

  /** A new request passes those that are still prepared: they could not use the slot. */
  #mayStart(urgency: Urgency): boolean {
    return this.#policy.mayStart(
      urgency,
      this.#queue.hasInteractive((waiting) => !isPrepared(waiting)),
    )
  }

  #preparationOf(request: Request<K>, owner: Preparing["owner"]): Preparing | undefined {
    const terms =
      this.#policy.ready && !this.#prepares ? undefined : preparationOf[this.#options.kind](request)
    return terms && { terms, owner, id: undefined, done: false }
  }

  /** Lets the engine prepare a request that has just joined the queue, or that an engine before it had. */
  #prepare(scheduled: ScheduledRequest<K>): void {
    const { preparation } = scheduled
    if (preparation === undefined) return
    if (!this.#policy.ready) {
      this.#unprepared.add(scheduled)
      return
    }
    this.#unprepared.delete(scheduled)
    preparation.done = !this.#prepares
    if (preparation.done) return
    const { owner, terms } = preparation
    const id = this.#preparing.add(scheduled)
    preparation.id = id
    this.#options.send({ type: "prepare", id, terms, owner })
  }

  /** A request has left the queue and will not begin. */
  #discard(scheduled: ScheduledRequest<K>): void {
    this.#unprepared.delete(scheduled)
    const id = scheduled.preparation?.id
    if (id !== undefined && this.#preparing.delete(id)) this.#options.send({ type: "discard", id })
  }

  #onPrepared({ error, id }: PreparedEvent): void {
    const scheduled = this.#preparing.get(id)
    if (scheduled?.preparation === undefined) return
    if (error === undefined) {
      scheduled.preparation.done = true
      return
    }
    this.#preparing.delete(id)
    this.#queue.leave(scheduled)
    this.#lastUsedMs = performance.now()
    this.#meters.outcomes.failed++
    scheduled.resume(Effect.fail(runErrorOf(this.#entry.id, error)))
  }

  #atCapacity(user: string): AtCapacity {
    const retryAfterMs = this.#queue.retryAfterMs(Math.max(1, this.#policy.slots), user)
    return new AtCapacity({ model: this.#entry.id, retryAfterMs })
  }

  #unavailable(): ModelUnavailable {
    return new ModelUnavailable({ model: this.#entry.id, retryAfterMs: Limits.reviveAfterMs })
  }

  /** The refusal for a user that is refused for a while after crashes; undefined for all others. */
  #refusal(user: string): ModelUnavailable | undefined {
    if (this.#suspects.isEmpty) return undefined
    const retryAfterMs = this.#suspects.refusedForMs(user, performance.now())
    return retryAfterMs > 0 ? new ModelUnavailable({ model: this.#entry.id, retryAfterMs }) : undefined
  }

  /** Two users on probation are not served at the same time. */
  #isHeld(user: string): boolean {
    return !this.#suspects.isEmpty && this.#suspects.isHeld(user, this.#usersInEngine(), performance.now())
  }

  #usersInEngine(): ReadonlyArray<string> {
    return this.#open.values().map(({ place }) => place.user)
  }

  #setPaused(scheduled: ScheduledRequest<K>, id: RequestId, paused: boolean): void {
    scheduled.paused = paused
    this.#reportWork()
    this.#options.send(paused ? { type: "pause", id } : { type: "resume", id })
  }

  #start(scheduled: ScheduledRequest<K>): void {
    const id = this.#open.add(scheduled)
    this.#policy.taken += scheduled.slots
    scheduled.id = id
    scheduled.startedAtMs = performance.now()
    const { urgency } = scheduled.place
    this.#policy.started(urgency, scheduled.startedAtMs)
    if (urgency !== "background")
      this.#meters.queueWaitMs.record(scheduled.startedAtMs - scheduled.requestedAtMs)
    this.#reportWork()
    const prepared = scheduled.preparation?.id
    if (prepared === undefined) this.#options.send({ type: this.#verb, id, request: scheduled.request })
    else {
      this.#preparing.delete(prepared)
      this.#options.send({ type: this.#verb, id, request: scheduled.request, prepared })
    }
  }

  #reportWork(): void {
    const { onWork } = this.#options
    if (onWork === undefined) return
    const most = mostUrgent(this.#open.values())
    if (most === this.#reportedWork) return
    this.#reportedWork = most
    onWork(most)
  }

  #cancel(scheduled: ScheduledRequest<K>): void {
    if (this.#queue.leave(scheduled)) {
      this.#discard(scheduled)
      this.#meters.outcomes.cancelled++
      return
    }
    if (scheduled.id === undefined || this.#open.get(scheduled.id) !== scheduled) return
    scheduled.cancelledAtMs = performance.now()
    this.#options.send({ type: "cancel", id: scheduled.id })
  }

  /** One step message of the engine, with the time when it arrived. */
  onStep({ ended, prepared, started, units }: Step<K>, nowMs: number): void {
    if (started !== undefined) for (const event of started) this.#onStarted(event)
    if (units !== undefined) this.#readUnits(units, this, nowMs)
    if (ended !== undefined) for (const event of ended) this.#onEnd(event)
    if (prepared === undefined) return
    for (const event of prepared) this.#onPrepared(event)
    this.pump()
  }

  /** The request, unless it was cancelled here: then it keeps its slot until its end arrives, and its caller gets no events. */
  #uncancelled(id: RequestId): ScheduledRequest<K> | undefined {
    const scheduled = this.#open.get(id)
    return scheduled?.cancelledAtMs === undefined ? scheduled : undefined
  }

  #onStarted({ id, started }: StartedEvent<K>): void {
    const scheduled = this.#uncancelled(id)
    if (scheduled === undefined) return
    const flow: Flow = {
      pause: () => this.#setPaused(scheduled, id, true),
      resume: () => this.#setPaused(scheduled, id, false),
    }
    scheduled.reader.started?.(started, flow)
  }

  /** One unit of one request; called for every token. */
  onUnit(id: RequestId, unit: Unit<K>, atMs: number): void {
    const scheduled = this.#uncancelled(id)
    if (scheduled === undefined) return
    recordUnit(this.#meters, scheduled, atMs)
    scheduled.reader.take(unit)
  }

  #onEnd(event: EndEvent<K>): void {
    const scheduled = this.#open.get(event.id)
    if (scheduled === undefined) return
    this.#open.delete(event.id)
    this.#policy.taken -= scheduled.slots
    this.#reportWork()
    const nowMs = performance.now()
    this.#lastUsedMs = nowMs
    this.#queue.observe(nowMs - scheduled.startedAtMs)
    // Before the caller gets the end: a file requests its next window at once, and must not take the free slot from a
    // request that waits for it.
    this.pump()
    if (scheduled.cancelledAtMs !== undefined) {
      this.#slowestCancelMs = Math.max(this.#slowestCancelMs, nowMs - scheduled.cancelledAtMs)
      this.#meters.cancelToIdleMs.record(nowMs - scheduled.cancelledAtMs)
      this.#meters.outcomes.cancelled++
    } else if (event.error === undefined) {
      this.#meters.outcomes.done++
      scheduled.resume(Effect.succeed(event.end))
    } else {
      this.#meters.outcomes.failed++
      scheduled.resume(Effect.fail(runErrorOf(this.#entry.id, event.error)))
    }
  }

  /** Fails the requests that the engine worked on. Those that it had prepared wait for the next engine, which prepares them again. */
  #lose(reason: EngineFailed["reason"], detail: string): void {
    this.#policy.ready = false
    this.#policy.taken = 0
    const lost = this.#open.values()
    this.#open.clear()
    for (const scheduled of this.#preparing.values()) {
      if (!isPrepared(scheduled)) {
        this.#queue.leave(scheduled)
        lost.push(scheduled)
      } else if (scheduled.preparation !== undefined) {
        scheduled.preparation.id = undefined
        scheduled.preparation.done = false
        this.#unprepared.add(scheduled)
      }
    }
    this.#preparing.clear()
    this.#reportWork()
    for (const scheduled of lost) {
      this.#meters.outcomes[scheduled.cancelledAtMs === undefined ? "failed" : "cancelled"]++
      if (scheduled.cancelledAtMs !== undefined) continue
      scheduled.resume(Effect.fail(new EngineFailed({ model: this.#entry.id, reason, detail })))
    }
  }
}
