// Runs one request of a caller on a model: admission, payment, start, end. The caller of this file reads the units in
// its own way.
import { Context, Deferred, Effect, Exit, Fiber, type Scope } from "effect"
import { Drain } from "#actors/Drain.ts"
import type { RequestReader, RunError } from "#actors/engine/EngineRequest.ts"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
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
import type { Flow, Reader } from "#engines/protocol/Reader.ts"
import type { End, EngineKind, Request, Started, Unit } from "#engines/protocol/Verbs.ts"
import { CurrentRequest, nowMs, type RequestContext } from "#http/RequestContext.ts"
import { Accounts, type Principal } from "#store/accounts/Accounts.ts"
import { CurrentSpendingLimit } from "#store/ledger/SpendingLimit.ts"
import { type Reservation, UsageLedger } from "#store/ledger/UsageLedger.ts"

export type ModelRunError = RunError | Draining | ModelNotLoaded | PaymentRequired | Unauthorized

interface RunSpec<K extends EngineKind> {
  readonly principal: Principal
  readonly model: ModelHandle<K>
  readonly request: Request<K>
  /** The most that it can use, which is reserved. */
  readonly atMost: Usage
  /**
   * What it has used so far; undefined if nothing is charged. Called when the run ends for any reason. `exit` is how the
   * run ended, except with `untilReplied`.
   */
  readonly used: (exit?: Exit.Exit<End<K>, ModelRunError>) => Usage | undefined
  /** One object and not three closures, see MeteredReader. */
  readonly reader: Reader<Unit<K>, Started<K>, End<K>>
  /** Money reserved earlier, because preparing the request already costs something; if absent the run reserves it. */
  readonly reservation?: Reservation
  /**
   * True if the reply goes on after the engine has finished: the charge, and the wait of a draining node, then end with the
   * scope and not with the run.
   */
  readonly untilReplied?: boolean
}

export interface ModelRun<K extends EngineKind> {
  readonly started: Started<K>
  readonly flow: Flow
  /** Completes when the run has ended. */
  readonly end: Effect.Effect<End<K>, ModelRunError>
}

export type ModelRunServices = Accounts | Drain | UsageLedger

/** The error of a request whose key is revoked while it runs. Made once, because making an error with its stack is slow. */
const refused = Effect.fail(new Unauthorized({ reason: "invalid-key" }))

interface Accepted<K extends EngineKind> {
  readonly started: Started<K>
  readonly flow: Flow
}

/**
 * Receives the engine's events of one run. Methods of a class, not closures: closures and their contexts are memory of each
 * run, which every token would have to load, because other runs fill the processor's caches between two tokens of one run.
 */
class MeteredReader<K extends EngineKind> implements RequestReader<K> {
  readonly #reader: RunSpec<K>["reader"]
  /** Whether a unit has arrived. */
  #begun = false
  readonly #model: string
  readonly #notes: RequestContext
  readonly #askedMs = nowMs()
  readonly #accepted: Deferred.Deferred<Accepted<K>, ModelRunError>

  constructor(
    { model, reader }: RunSpec<K>,
    notes: RequestContext,
    accepted: Deferred.Deferred<Accepted<K>, ModelRunError>,
  ) {
    this.#reader = reader
    this.#model = model.entry.id
    this.#notes = notes
    this.#accepted = accepted
  }

  started(started: Started<K>, flow: Flow): void {
    this.#notes.accepted(this.#askedMs, this.#model)
    this.#reader.started?.(started, flow)
    Deferred.doneUnsafe(this.#accepted, Effect.succeed({ started, flow }))
  }

  take(unit: Unit<K>): void {
    if (!this.#begun) {
      this.#begun = true
      this.#notes.firstUnit()
    }
    this.#reader.take(unit)
  }
}

/** Reserves the most that a request can cost; released when the scope closes, unless it is charged before. */
export const reserveFor = (
  principal: Principal,
  entry: ModelEntry,
  atMost: Usage,
): Effect.Effect<Reservation, PaymentRequired, Scope.Scope | UsageLedger> =>
  Effect.flatMap(CurrentRequest, (notes) =>
    Effect.flatMap(UsageLedger, (ledger) =>
      Effect.map(ledger.reserve(principal, costOf(entry.price, atMost)), (reservation) => {
        notes.reserved(reservation)
        return reservation
      }),
    ),
  )

/** Makes a draining node wait until the scope closes. */
const holdDrain = (drain: Drain["Service"]): Effect.Effect<void, Draining, Scope.Scope> =>
  Effect.suspend(() =>
    drain.isClosed()
      ? Effect.fail(new Draining())
      : Effect.asVoid(Effect.forkScoped(drain.admit(Effect.never), { startImmediately: true })),
  )

/**
 * Starts a run and waits until the engine has accepted it, so that every refusal comes before anything
 * is answered. Closing the scope ends the run; what it has used by then is charged.
 */
export const beginRun = Effect.fnUntraced(function* <K extends EngineKind>(spec: RunSpec<K>) {
  const { model, principal } = spec
  const { entry } = model
  // One step for all services: every request runs this.
  const services = yield* Effect.context<ModelRunServices>()
  const accounts = Context.get(services, Accounts)
  const drain = Context.get(services, Drain)
  const ledger = Context.get(services, UsageLedger)
  const notes = Context.get(services, CurrentRequest)

  const limit = Context.get(services, CurrentSpendingLimit)
  const leaveLimit = limit?.watch(() => {
    const usage = spec.used()
    return usage === undefined ? 0 : costOf(entry.price, usage)
  })
  if (leaveLimit !== undefined) yield* Effect.addFinalizer(() => Effect.sync(leaveLimit))
  const reservation = spec.reservation ?? (yield* reserveFor(principal, entry, spec.atMost))
  const settle = (exit?: Exit.Exit<End<K>, ModelRunError>) =>
    Effect.suspend(() => {
      leaveLimit?.()
      const usage = spec.used(exit)
      if (usage === undefined) return ledger.cancel(reservation)
      const microDollars = costOf(entry.price, usage)
      return Effect.asVoid(ledger.settle(reservation, { model: entry.id, usage, microDollars }))
    })

  const accepted = Deferred.makeUnsafe<Accepted<K>, ModelRunError>()
  const metered = new MeteredReader(spec, notes, accepted)
  const run = model
    .run(spec.request, metered, { user: principal.userId, organization: principal.orgId })
    .pipe(Effect.tap((end) => Effect.sync(() => spec.reader.ended?.(end))))
  if (spec.untilReplied === true) {
    yield* holdDrain(drain)
    yield* Effect.addFinalizer(() => settle())
  }
  const whole = spec.untilReplied === true ? run : drain.admit(Effect.onExit(run, settle))
  const fiber = yield* Effect.forkScoped(whole, { startImmediately: true })
  // Callbacks and not races: every request runs this, and a race costs two fibers.
  let revoked = false
  const leave = accounts.onRevoked(principal, () => {
    revoked = true
    fiber.interruptUnsafe()
  })
  fiber.addObserver((exit) => {
    leave()
    if (Deferred.isDoneUnsafe(accepted)) return
    const detail = "ended before it started"
    const reply = Exit.isSuccess(exit)
      ? Effect.fail(new EngineFailed({ model: entry.id, reason: "protocol", detail }))
      : revoked
        ? refused
        : Effect.failCause(exit.cause)
    Deferred.doneUnsafe(accepted, reply)
  })
  const { flow, started } = yield* Deferred.await(accepted)
  const end: Effect.Effect<End<K>, ModelRunError> = Effect.flatMap(
    Fiber.await(fiber),
    (exit): Effect.Effect<End<K>, ModelRunError> =>
      revoked && Exit.isFailure(exit) && Exit.hasInterrupts(exit) ? refused : exit,
  )
  const begun: ModelRun<K> = { started, flow, end }
  return begun
})
