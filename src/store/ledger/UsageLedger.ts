// The usage ledger: money is set aside before work, charged after it, and written to the database in batches.
//
// A reservation and a settlement are synchronous changes of a Balance in memory. The database follows within 20 ms, one
// batch per transaction. A crash loses only the batch that was not yet written. On a store that several nodes share, a prepaid
// organization's requests are paid from what is leased to this node (Lease); the transaction of the batch also asks for leases and
// gives them back.
import { randomBytes } from "node:crypto"
import { Array as Arr, Clock, Context, Duration, Effect, Exit, Latch, Layer, Scope, Semaphore } from "effect"
import type { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { timedIds } from "#domain/access/FreshIds.ts"
import type { ModelUsage, Usage, UsageReceipt } from "#domain/models/Usage.ts"
import type { PaymentRequired } from "#domain/wire/Errors.ts"
import type { Principal } from "../accounts/AccountRows.ts"
import { notWorking, StoreUnavailable } from "../files/StoreErrors.ts"
import { makeStoreClock } from "../sql/StoreClock.ts"
import { StoreNode } from "../sql/StoreNode.ts"
import { StorePresence } from "../sql/StorePresence.ts"
import { type Balance, release } from "./Balance.ts"
import { leasedBalances } from "./LeasedBalances.ts"
import type { NodeLease } from "./LeaseRows.ts"
import { makeLedgerRows, type OrgBalance, type Receipt, type ReceiptsOf } from "./LedgerRows.ts"
import { spooledMs } from "./ReceiptDays.ts"
import { openSpool, type ReceiptSpool, SpoolOptions } from "./ReceiptSpool.ts"
import { wholeBalances } from "./WholeBalances.ts"

const newId = timedIds(randomBytes, Date.now)

/** Longest time that a settled request waits for others to share its transaction. */
const flushEvery = Duration.millis(20)
/** Delay after a batch that could not be written. A guess. */
const flushRetry = Duration.seconds(1)
/**
 * Unwritten receipts at most, and the size of a batch: 128 hold the event loop for 1.4 ms (median, busy test machine).
 */
const maxUnflushed = 128
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

const spoolIsFull = new StoreUnavailable({
  place: "store",
  problem: "the file for receipts is full, and the database does not answer",
})

/** A spool that is not emptied now is emptied at the next start, after its receipts were found to be written. */
const emptied = (spool: ReceiptSpool) =>
  Effect.catch(spool.clear, (error) =>
    Effect.logWarning("the file of receipts was not emptied", error.message),
  )

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
    /** What nodes on a shared store hold of an organization's balance, the largest part first. */
    readonly leases: (orgId: string) => Effect.Effect<ReadonlyArray<NodeLease>, StoreUnavailable>
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
  static readonly layer: Layer.Layer<UsageLedger, StoreUnavailable, SqlClient.SqlClient> = Layer.effect(
    UsageLedger,
    Effect.suspend(() => make),
  )
}

const make = Effect.gen(function* () {
  const rows = yield* makeLedgerRows
  const settled = new Map<string, { -readonly [K in keyof Usage]: Usage[K] }>()
  let unflushed: Array<Receipt> = []
  /** Batches are written one after another. */
  const database = yield* Semaphore.make(1)
  const waiting = yield* Latch.make(false)
  /** Open while leased balances have something to ask that cannot wait for the next batch. */
  const urgent = yield* Latch.make(false)
  const presence = yield* StorePresence
  const options = yield* SpoolOptions
  const opened = options === undefined ? undefined : yield* openSpool(options)
  if (opened !== undefined && opened.left.length > 0) {
    const from = (yield* yield* makeStoreClock) - spooledMs
    const left = opened.left.filter(({ atMs }) => atMs >= from)
    const old = opened.left.filter(({ atMs }) => atMs < from)
    // Before the leases of that start end: these receipts were paid from them.
    yield* Effect.mapError(
      Effect.forEach(Arr.chunksOf(left, maxUnflushed), (some) => rows.exchange(some, new Map()), {
        discard: true,
      }),
      notWorking,
    )
    yield* Effect.logInfo("receipts of an outage are written").pipe(
      Effect.annotateLogs({ receipts: left.length }),
    )
    if (old.length > 0) yield* opened.setAside(old)
  }
  if (opened !== undefined) yield* opened.clear
  const spool = options?.isUsed === true ? opened : undefined
  /** How many of `unflushed`, from its front, are in the spool. */
  let spooled = 0
  const balances =
    (yield* StoreNode) === ""
      ? wholeBalances(rows, database)
      : yield* leasedBalances(rows, () => void urgent.openUnsafe())

  const count = (model: string, usage: Usage): void => {
    const sum = settled.get(model)
    if (sum === undefined) return void settled.set(model, { ...usage })
    sum.inputTokens += usage.inputTokens
    sum.outputTokens += usage.outputTokens
    sum.audioMs += usage.audioMs
  }

  /** All or nothing: a batch that could not be written goes back to the front. */
  const flushBatch = Effect.suspend(() => {
    const batch = unflushed.slice(0, maxUnflushed)
    unflushed = unflushed.slice(maxUnflushed)
    return balances.write(batch).pipe(
      Effect.onError(() =>
        Effect.sync(() => {
          unflushed = [...batch, ...unflushed]
        }),
      ),
      Effect.andThen(
        Effect.suspend(() => {
          if (spooled === 0) return Effect.void
          spooled = Math.max(0, spooled - batch.length)
          return spooled === 0 && spool !== undefined ? emptied(spool) : Effect.void
        }),
      ),
    )
  })
  const flushOnce = Effect.suspend(() => {
    let left = unflushed.length - maxUnflushed
    const rest: Effect.Effect<void, SqlError> = Effect.suspend(() => {
      if (left <= 0) return Effect.void
      left -= maxUnflushed
      return Effect.andThen(flushBatch, rest)
    })
    return Effect.andThen(flushBatch, rest)
  }).pipe(Effect.uninterruptible, (flush) => database.withPermit(flush))

  /** Puts receipts that the database did not take into the spool. Runs with the permit of `database`. */
  const putAside = Effect.suspend(() => {
    if (spool === undefined || spooled >= unflushed.length || spool.isOver()) return Effect.void
    const some = unflushed.slice(spooled)
    return Effect.andThen(
      spool.add(some),
      Effect.sync(() => {
        spooled += some.length
      }),
    )
  }).pipe(
    Effect.catch((error) => Effect.logError("receipts could not be put aside", error.message)),
    Effect.uninterruptible,
    (work) => database.withPermit(work),
  )

  /** Queues a receipt for the database. False if the receipt is lost to the store. */
  const putOnItsWay = Effect.fnUntraced(function* (receipt: Receipt) {
    let isWritten = true
    // As often as others fill the queue again while a batch is written.
    while (unflushed.length >= maxUnflushed && isWritten && !presence.isAway()) {
      isWritten = Exit.isSuccess(yield* Effect.exit(flushOnce))
    }
    if (unflushed.length >= maxUnflushed && (spool === undefined || spool.isOver())) {
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
      Effect.andThen(
        putAside,
        Effect.suspend(() =>
          unflushed.length === spooled
            ? Effect.logWarning("usage receipts are put aside until the next start", error.message)
            : Effect.logError("usage receipts were lost at the end", {
                receipts: unflushed.length - spooled,
                error: error.message,
              }),
        ),
      ),
    ),
  )
  /** When a batch failed last, `performance.now()`. */
  let failedAtMs = Number.NEGATIVE_INFINITY
  const flushOrPutAside = Effect.suspend(() =>
    spool !== undefined && presence.isAway() && performance.now() - failedAtMs < Duration.toMillis(flushRetry)
      ? Effect.andThen(putAside, waiting.open)
      : flushOnce,
  )
  yield* waiting.await.pipe(
    Effect.andThen(Effect.sleep(flushEvery)),
    Effect.andThen(waiting.close),
    Effect.andThen(flushOrPutAside),
    Effect.catch((error) =>
      Effect.logError("usage receipts could not be written; will try again", {
        receipts: unflushed.length,
        error: error.message,
      }).pipe(
        Effect.andThen(
          Effect.suspend(() => {
            failedAtMs = performance.now()
            return spool === undefined ? Effect.sleep(flushRetry) : putAside
          }),
        ),
        Effect.andThen(waiting.open),
      ),
    ),
    Effect.forever,
    Effect.forkScoped,
  )

  // A failure has been reported to those that asked; receipts of the batch are tried again by the loop above.
  yield* urgent.await.pipe(
    Effect.andThen(urgent.close),
    Effect.andThen(Effect.ignore(flushOnce)),
    Effect.forever,
    Effect.forkScoped,
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

  const cancel = (reservation: Reservation) =>
    Effect.sync(() => {
      const balance = close(reservation, "cancelled")
      if (balance !== undefined) balances.released(balance)
    })

  return UsageLedger.of({
    reserve: (principal, estimateMicroDollars) =>
      // Not `acquireRelease`, which copies the map of all services when the scope closes; `cancel` needs none of them.
      Effect.uninterruptible(
        Effect.flatMap(Effect.scope, (scope) =>
          Effect.tap(
            spool?.isFull() === true
              ? Effect.die(spoolIsFull)
              : Effect.map(
                  balances.reserve(principal.orgId, estimateMicroDollars),
                  (balance) => new OpenReservation(principal, estimateMicroDollars, balance),
                ),
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
          balances.released(balance)
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
        if (!(yield* balances.writeIf(receipt, change))) return false
        const balance = close(reservation, "settled")
        if (balance === undefined) return true
        balances.released(balance)
        count(settlement.model, settlement.usage)
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

    leases: (orgId) => Effect.mapError(rows.leases.of(orgId), notWorking),

    receipt: (orgId, receiptId) =>
      Effect.mapError(Effect.andThen(flushOnce, rows.receipt(orgId, receiptId)), notWorking),

    receipts: (orgId, sinceMs, atMost) =>
      Effect.mapError(Effect.andThen(flushOnce, rows.receipts(orgId, sinceMs, atMost)), notWorking),
  })
})
