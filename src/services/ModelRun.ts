// One request on a model on behalf of a caller: admitted, paid for, started, ended. Every endpoint that runs a model
// goes through here; what it does with the units is its own.
import { Deferred, Effect, Exit, Fiber, type Scope } from "effect"
import { Drain } from "#actors/Drain.ts"
import type { Flow, Listener, RunError } from "#actors/engine/EngineRequest.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { costOf } from "#domain/models/Money.ts"
import type { Usage } from "#domain/models/Usage.ts"
import {
  Draining,
  EngineFailed,
  type ModelNotLoaded,
  type PaymentRequired,
  Unauthorized,
} from "#domain/wire/Errors.ts"
import { CurrentRequest, nowMs, type RequestContext } from "#http/RequestContext.ts"
import { Accounts, type Principal } from "#store/accounts/Accounts.ts"
import { type Reservation, UsageLedger } from "#store/ledger/UsageLedger.ts"

export type ModelRunError = RunError | Draining | ModelNotLoaded | PaymentRequired | Unauthorized

/** What a run tells of its work, on the event loop. One object and not three closures, see RunListener. */
export interface RunReader<Started, Unit, End> {
  onStarted(facts: Started): void
  onUnit(unit: Unit): void
  onEnd(end: End): void
}

export interface RunSpec<Started, Unit, End> {
  readonly principal: Principal
  readonly entry: ModelEntry
  /** The engine verb's request. */
  readonly request: unknown
  /** The most it can use: what is reserved. */
  readonly atMost: Usage
  /**
   * What it has used by now, asked when it ends for whatever reason; undefined for nothing to charge. `exit` is how the
   * run ended, except with `untilReplied`.
   */
  readonly used: (exit?: Exit.Exit<unknown, ModelRunError>) => Usage | undefined
  readonly reader: RunReader<Started, Unit, End>
  /** Money set aside earlier, where preparing the request already costs something; else the run does it. */
  readonly reservation?: Reservation
  /**
   * True where the reply outlives the engine's work: it is charged, and a draining node waits for it, until the scope
   * closes and not only until the run has ended.
   */
  readonly untilReplied?: boolean
}

export interface ModelRun<Started, End> {
  readonly facts: Started
  readonly flow: Flow
  /** Ends with the run. */
  readonly end: Effect.Effect<End, ModelRunError>
}

export type ModelRunServices = Accounts | Drain | ModelRegistry | UsageLedger

/** Of a request whose key is revoked while it runs. Made once: an error with its stack costs more than it tells. */
const refused = Effect.fail(new Unauthorized({ reason: "invalid-key" }))

interface Accepted<Started> {
  readonly facts: Started
  readonly flow: Flow
}

/**
 * Hears the engine for one run. Methods of a class, not closures: those and their contexts are memory of each run's own, which
 * every token would have to load, and between two tokens of a run the caches have been filled with something else.
 */
class RunListener<Started, Unit, End> implements Listener<Started, Unit> {
  private readonly reader: RunReader<Started, Unit, End>
  /** Whether a unit has come. */
  private begun = false
  private readonly model: string
  private readonly notes: RequestContext
  private readonly askedMs = nowMs()
  private readonly accepted: Deferred.Deferred<Accepted<Started>, ModelRunError>

  constructor(
    { entry, reader }: RunSpec<Started, Unit, End>,
    notes: RequestContext,
    accepted: Deferred.Deferred<Accepted<Started>, ModelRunError>,
  ) {
    this.reader = reader
    this.model = entry.id
    this.notes = notes
    this.accepted = accepted
  }

  started(facts: Started, flow: Flow): void {
    this.notes.accepted(this.askedMs, this.model)
    this.reader.onStarted(facts)
    Deferred.doneUnsafe(this.accepted, Effect.succeed({ facts, flow }))
  }

  unit(unit: Unit): void {
    if (!this.begun) {
      this.begun = true
      this.notes.firstUnit()
    }
    this.reader.onUnit(unit)
  }
}

/** Sets aside the most that a request can cost; released when the scope closes, unless it is charged before. */
export const reserveFor = (
  principal: Principal,
  entry: ModelEntry,
  atMost: Usage,
): Effect.Effect<Reservation, PaymentRequired, Scope.Scope | UsageLedger> =>
  Effect.gen(function* () {
    const notes = yield* CurrentRequest
    const reservation = yield* (yield* UsageLedger).reserve(principal, costOf(entry.price, atMost))
    notes.reserved(reservation)
    return reservation
  })

/** Makes a draining node wait until the scope closes. */
const holdDrain = (drain: Drain["Service"]): Effect.Effect<void, Draining, Scope.Scope> =>
  Effect.gen(function* () {
    if (drain.isClosed()) return yield* new Draining()
    yield* Effect.forkScoped(drain.admit(Effect.never), { startImmediately: true })
  })

/**
 * Starts a run and waits until the engine has accepted it, so that whatever can be refused is refused before anything
 * is answered. Closing the scope ends it; what it has used by then is charged.
 */
export const beginRun = <Started, Unit, End>(
  spec: RunSpec<Started, Unit, End>,
): Effect.Effect<ModelRun<Started, End>, ModelRunError, Scope.Scope | ModelRunServices> =>
  Effect.gen(function* () {
    const { entry, principal } = spec
    const accounts = yield* Accounts
    const drain = yield* Drain
    const ledger = yield* UsageLedger
    const registry = yield* ModelRegistry

    const reservation = spec.reservation ?? (yield* reserveFor(principal, entry, spec.atMost))
    const settle = (exit?: Exit.Exit<unknown, ModelRunError>) =>
      Effect.suspend(() => {
        const usage = spec.used(exit)
        if (usage === undefined) return ledger.cancel(reservation)
        const microDollars = costOf(entry.price, usage)
        return Effect.asVoid(ledger.settle(reservation, { model: entry.id, usage, microDollars }))
      })

    const notes = yield* CurrentRequest
    const started = Deferred.makeUnsafe<Accepted<Started>, ModelRunError>()
    const listener = new RunListener(spec, notes, started)
    const run = registry
      .run<Started, Unit, End>(entry.id, spec.request, listener, { user: principal.userId })
      .pipe(Effect.tap((end) => Effect.sync(() => spec.reader.onEnd(end))))
    if (spec.untilReplied === true) {
      yield* holdDrain(drain)
      yield* Effect.addFinalizer(() => settle())
    }
    const whole = spec.untilReplied === true ? run : drain.admit(Effect.onExit(run, settle))
    const fiber = yield* Effect.forkScoped(whole, { startImmediately: true })
    // Callbacks and not races: this is on every request's way, and a race costs two fibers.
    let revoked = false
    const leave = accounts.onRevoked(principal, () => {
      revoked = true
      fiber.interruptUnsafe()
    })
    fiber.addObserver((exit) => {
      leave()
      if (Deferred.isDoneUnsafe(started)) return
      const detail = "ended before it started"
      const reply = Exit.isSuccess(exit)
        ? Effect.fail(new EngineFailed({ model: entry.id, reason: "protocol", detail }))
        : revoked
          ? refused
          : Effect.failCause(exit.cause)
      Deferred.doneUnsafe(started, reply)
    })
    const { facts, flow } = yield* Deferred.await(started)
    const end: Effect.Effect<End, ModelRunError> = Effect.flatMap(
      Fiber.await(fiber),
      (exit): Effect.Effect<End, ModelRunError> =>
        revoked && Exit.isFailure(exit) && Exit.hasInterrupts(exit) ? refused : exit,
    )
    return { facts, flow, end }
  })
