// The usage ledger: money is set aside before work, charged after it, and written to the database in batches.
//
// A reservation and a settlement are synchronous changes of a Balance in memory. The database follows within 20 ms, one
// batch per transaction. A crash loses only the batch that was not yet written.
import { randomBytes } from "node:crypto"
import { Clock, Context, Duration, Effect, Latch, Layer, Scope, Semaphore } from "effect"
import type { SqlClient } from "effect/sql"
import { freshIds } from "#domain/access/FreshIds.ts"
import type { SqlError } from "effect/sql/SqlError"
import type { ModelUsage, Usage, UsageReceipt } from "#domain/models/Usage.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { PaymentRequired } from "#domain/wire/Errors.ts"
import type { Principal } from "../accounts/AccountRows.ts"
import { notWorking, type StoreUnavailable } from "../files/StoreErrors.ts"
import { type Balance, isIdle, newBalance, readBack, release, tryReserve } from "./Balance.ts"
import { chargesByOrg, makeLedgerRows, type OrgBalance, type Receipt, type ReceiptsOf } from "./LedgerRows.ts"

const newId = freshIds(randomBytes)

/** Longest time that a settled request waits for others to share its transaction. */
const flushEvery = Duration.millis(20)
/** Delay after a batch that could not be written. A guess. */
const flushRetry = Duration.seconds(1)
/**
 * Unwritten receipts at most, and the size of a batch: 128 hold the event loop for 1.4 ms (median, busy test machine).
 */
const maxUnflushed = 128
/** Longest age of a cached balance. Protocol 5.2 allows 5 s until new credit is noticed. */
const balanceLifeMs = 2000
/** Cached balances that are not in use. A guess: 10,000 take about 2 MB. */
const maxBalances = 10_000

/** Money set aside for one request. It is settled or cancelled once; a second call does nothing. */
export interface Reservation {
  readonly principal: Principal
  readonly microDollars: number
  /** Id of the receipt that its settlement writes, unless the settlement names another. */
  readonly receiptId: string
  readonly state: "open" | "settled" | "cancelled"
}

class OpenReservation implements Reservation {
  readonly principal: Principal
  readonly microDollars: number
  readonly balance: Balance
  readonly receiptId = `rcpt_${newId()}`
  state: Reservation["state"] = "open"

  constructor(principal: Principal, microDollars: number, balance: Balance) {
    this.principal = principal
    this.microDollars = microDollars
    this.balance = balance
  }
}

export interface Settlement {
  readonly model: string
  readonly usage: Usage
  readonly microDollars: number
  /** For work that may be repeated after a crash (e.g. a job's id): such a receipt is written and charged only once. */
  readonly receiptId?: string
}

export class UsageLedger extends Context.Service<
  UsageLedger,
  {
    /**
     * Sets an estimate aside. Refuses an organization that has no payment method and not enough credits; without any
     * credits it is refused even for an estimate of 0. Cancelled when the scope closes, unless it was settled.
     */
    readonly reserve: (
      principal: Principal,
      estimateMicroDollars: number,
    ) => Effect.Effect<Reservation, PaymentRequired, Scope.Scope>
    /** Releases the reservation and charges the actual use. Returns the receipt's id. */
    readonly settle: (reservation: Reservation, settlement: Settlement) => Effect.Effect<string>
    /**
     * The same in one transaction with `change`, a change of the store: if that gives false, nothing is charged and the reservation stays
     * open. Dies if the store does not work; then nothing has happened. True if it was done.
     */
    readonly settleIf: (
      reservation: Reservation,
      settlement: Settlement,
      change: Effect.Effect<boolean, SqlError>,
    ) => Effect.Effect<boolean>
    readonly cancel: (reservation: Reservation) => Effect.Effect<void>
    /** Use that has been settled since the node started, by model of the catalog. */
    readonly settled: () => ReadonlyMap<string, Usage>
    /** Drops models from `settled` that the catalog no longer has. */
    readonly forgetSettled: (which: (model: string) => boolean) => void
    /** Writes all receipts that are not in the database yet. */
    readonly flush: Effect.Effect<void, StoreUnavailable>
    /** An organization's use since a time (ms since 1970), by model, highest cost first. */
    readonly usage: (
      orgId: string,
      sinceMs: number,
    ) => Effect.Effect<ReadonlyArray<ModelUsage>, StoreUnavailable>
    /** What deleted organizations used, all together, by model. */
    readonly deletedUsage: Effect.Effect<ReadonlyArray<ModelUsage>, StoreUnavailable>
    /** Replaces receipts by sums of their day, after all receipts so far were written. Returns their number. */
    readonly summarize: (which: ReceiptsOf) => Effect.Effect<number, StoreUnavailable>
    /** An organization's balance in the database, after all receipts so far were written. */
    readonly balance: (orgId: string) => Effect.Effect<Omit<OrgBalance, "orgId">, StoreUnavailable>
    /** The receipt of that id, if it is the organization's: none or one. */
    readonly receipt: (
      orgId: string,
      receiptId: string,
    ) => Effect.Effect<ReadonlyArray<UsageReceipt>, StoreUnavailable>
    /** Its single receipts since then, newest first. */
    readonly receipts: (
      orgId: string,
      sinceMs: number,
      atMost: number,
    ) => Effect.Effect<ReadonlyArray<UsageReceipt>, StoreUnavailable>
  }
>()("edgewise/store/UsageLedger") {
  static readonly layer: Layer.Layer<UsageLedger, never, SqlClient.SqlClient> = Layer.effect(
    UsageLedger,
    Effect.suspend(() => make),
  )
}

const make = Effect.gen(function* () {
  const rows = yield* makeLedgerRows
  const balances = new Map<string, Balance>()
  const settled = new Map<string, { -readonly [K in keyof Usage]: Usage[K] }>()
  let unflushed: Array<Receipt> = []
  /** Reads and writes of balances are serialized, so that no read sees half a batch. */
  const database = yield* Semaphore.make(1)
  const waiting = yield* Latch.make(false)

  const balanceFor = (orgId: string): Balance => {
    const known = balances.get(orgId)
    if (known !== undefined) return known
    for (const [id, balance] of balances) {
      if (balances.size < maxBalances) break
      // The map is in insertion order, oldest first. A balance in use is skipped until it is idle.
      if (isIdle(balance)) balances.delete(id)
    }
    const fresh = newBalance(orgId)
    balances.set(orgId, fresh)
    return fresh
  }

  const count = (model: string, usage: Usage): void => {
    const sum = settled.get(model)
    if (sum === undefined) return void settled.set(model, { ...usage })
    sum.inputTokens += usage.inputTokens
    sum.outputTokens += usage.outputTokens
    sum.audioMs += usage.audioMs
  }

  const isFresh = (balance: Balance, nowMs: number) => nowMs - balance.readAtMs < balanceLifeMs

  /** All or nothing: a batch that could not be written goes back to the front. */
  const flushOnce = Effect.gen(function* () {
    if (unflushed.length === 0) return
    const batch = unflushed
    unflushed = []
    const charges = chargesByOrg(batch)
    const written = yield* Effect.onError(rows.write(batch), () =>
      Effect.sync(() => {
        unflushed = [...batch, ...unflushed]
      }),
    )
    const nowMs = yield* monotonicMs
    for (const [orgId, charge] of charges) {
      const row = written.find((balance) => balance.orgId === orgId)
      readBack(balanceFor(orgId), row, charge, nowMs)
    }
  }).pipe(Effect.uninterruptible, (flush) => database.withPermit(flush))

  /** Queues a receipt for the database. False if the receipt is lost to the store. */
  const putOnItsWay = Effect.fnUntraced(function* (receipt: Receipt) {
    if (unflushed.length >= maxUnflushed) yield* Effect.ignore(flushOnce)
    if (unflushed.length >= maxUnflushed) {
      // The database cannot be written and the queue is full: the log line is the only record of this receipt.
      yield* Effect.logError("usage receipt could not be written", { ...receipt, ...receipt.usage })
      return false
    }
    unflushed.push(receipt)
    yield* waiting.open
    return true
  })

  yield* Effect.addFinalizer(() =>
    Effect.catch(flushOnce, (error) =>
      Effect.logError("usage receipts were lost at the end", {
        receipts: unflushed.length,
        error: error.message,
      }),
    ),
  )
  yield* waiting.await.pipe(
    Effect.andThen(Effect.sleep(flushEvery)),
    Effect.andThen(waiting.close),
    Effect.andThen(flushOnce),
    Effect.catch((error) =>
      Effect.logError("usage receipts could not be written; will try again", {
        receipts: unflushed.length,
        error: error.message,
      }).pipe(Effect.andThen(Effect.sleep(flushRetry)), Effect.andThen(waiting.open)),
    ),
    Effect.forever,
    Effect.forkScoped,
  )

  const decide = (principal: Principal, microDollars: number, balance: Balance) =>
    tryReserve(balance, microDollars)
      ? Effect.succeed(new OpenReservation(principal, microDollars, balance))
      : Effect.fail(new PaymentRequired())

  /**
   * Reads the balance if it is too old, then decides. Applying the read and deciding are one synchronous step, because
   * the balance could leave the cache in between.
   */
  const readAndDecide = (principal: Principal, microDollars: number) =>
    database.withPermit(
      Effect.flatMap(monotonicMs, (nowMs) => {
        const { orgId } = principal
        // Another request of this organization may have read it while this one waited.
        const known = balanceFor(orgId)
        if (isFresh(known, nowMs)) return decide(principal, microDollars, known)
        return Effect.flatMap(Effect.orDie(rows.balance(orgId)), (row) => {
          const balance = balanceFor(orgId)
          readBack(balance, row, 0, nowMs)
          return decide(principal, microDollars, balance)
        })
      }),
    )

  const close = (reservation: Reservation, state: "settled" | "cancelled"): Balance | undefined => {
    if (!(reservation instanceof OpenReservation) || reservation.state !== "open") return undefined
    reservation.state = state
    release(reservation.balance, reservation.microDollars)
    return reservation.balance
  }
  const receiptOf = ({ principal, receiptId }: Reservation, settlement: Settlement): Effect.Effect<Receipt> =>
    Effect.map(Clock.currentTimeMillis, (atMs) => ({
      receiptId: settlement.receiptId ?? receiptId,
      atMs,
      orgId: principal.orgId,
      userId: principal.userId,
      keyId: principal.keyId,
      model: settlement.model,
      usage: settlement.usage,
      microDollars: settlement.microDollars,
    }))

  const cancel = (reservation: Reservation) => Effect.sync(() => void close(reservation, "cancelled"))

  return UsageLedger.of({
    reserve: (principal, estimateMicroDollars) =>
      // Not `acquireRelease`, which copies the map of all services when the scope closes; `cancel` needs none of them.
      Effect.uninterruptible(
        Effect.flatMap(Effect.scope, (scope) =>
          Effect.tap(
            Effect.flatMap(monotonicMs, (nowMs) => {
              const balance = balanceFor(principal.orgId)
              return isFresh(balance, nowMs)
                ? decide(principal, estimateMicroDollars, balance)
                : readAndDecide(principal, estimateMicroDollars)
            }),
            (reservation) => Scope.addFinalizer(scope, cancel(reservation)),
          ),
        ),
      ),

    settle: (reservation, settlement) =>
      Effect.uninterruptible(
        Effect.flatMap(receiptOf(reservation, settlement), (receipt) => {
          const { microDollars, receiptId } = receipt
          const balance = close(reservation, "settled")
          if (balance === undefined) return Effect.succeed(receiptId)
          balance.unflushed += microDollars
          count(settlement.model, settlement.usage)
          return Effect.map(putOnItsWay(receipt), (isKept) => {
            // The receipt will never reach the database, so it must not stay in `unflushed`.
            if (!isKept) balance.unflushed -= microDollars
            return receiptId
          })
        }),
      ),

    settleIf: (reservation, settlement, change) =>
      Effect.gen(function* () {
        const receipt = yield* receiptOf(reservation, settlement)
        const written = yield* rows.writeIf(receipt, change)
        if (written === undefined) return false
        if (close(reservation, "settled") === undefined) return true
        count(settlement.model, settlement.usage)
        const { orgId } = reservation.principal
        const row = written.find((balance) => balance.orgId === orgId)
        readBack(balanceFor(orgId), row, 0, yield* monotonicMs)
        return true
      }).pipe(Effect.orDie, Effect.uninterruptible, (settling) => database.withPermit(settling)),

    cancel,

    settled: () => settled,
    forgetSettled: (which) => {
      for (const model of settled.keys()) if (which(model)) settled.delete(model)
    },

    flush: Effect.mapError(flushOnce, notWorking),

    usage: (orgId, sinceMs) =>
      Effect.mapError(Effect.andThen(flushOnce, rows.usage(orgId, sinceMs)), notWorking),

    deletedUsage: Effect.mapError(rows.deletedUsage, notWorking),
    summarize: (which) => Effect.mapError(Effect.andThen(flushOnce, rows.summarize(which)), notWorking),

    balance: (orgId) =>
      Effect.mapError(
        Effect.map(
          Effect.andThen(flushOnce, rows.balance(orgId)),
          (row) => row ?? { credits: 0, paymentMethod: false },
        ),
        notWorking,
      ),

    receipt: (orgId, receiptId) =>
      Effect.mapError(Effect.andThen(flushOnce, rows.receipt(orgId, receiptId)), notWorking),

    receipts: (orgId, sinceMs, atMost) =>
      Effect.mapError(Effect.andThen(flushOnce, rows.receipts(orgId, sinceMs, atMost)), notWorking),
  })
})
