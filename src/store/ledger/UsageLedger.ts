// What requests cost: money is set aside before work, charged after it, and written down in batches. Called by the
// api's metering and by cli; knows no model, no price and no HTTP.
//
// A reservation and a settlement are synchronous changes of a Balance in memory; the database follows within 20 ms, a
// batch a transaction. A crash loses the batch that was on its way, and nothing else.
import { Clock, Context, Duration, Effect, Latch, Layer, Scope, Semaphore } from "effect"
import type { SqlClient } from "effect/sql"
import type { ModelUsage, Usage, UsageReceipt } from "#domain/models/Usage.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { PaymentRequired } from "#domain/wire/Errors.ts"
import type { Principal } from "../accounts/AccountRows.ts"
import { notWorking, type StoreUnavailable } from "../files/StoreErrors.ts"
import { type Balance, isIdle, newBalance, readBack, release, tryReserve } from "./Balance.ts"
import { chargesByOrg, makeLedgerRows, type Receipt } from "./LedgerRows.ts"
import { newReceiptId } from "./ReceiptId.ts"

/** How long a settled request may wait for others to share its transaction. */
const flushEvery = Duration.millis(20)
/** After a batch that could not be written. A guess. */
const flushRetry = Duration.seconds(1)
/** Receipts on their way, at most; also the batch: 128 hold the event loop for 1.4 ms (median, busy test machine). */
const maxUnflushed = 128
/** How old a balance may be. The contract allows 5 s for credits added by another process to be noticed. */
const balanceLifeMs = 2000
/** Balances remembered beyond those in use. A guess: 10,000 are about 2 MB. */
const maxBalances = 10_000

/** Money set aside for one request. Settled or cancelled once; whatever comes second does nothing. */
export interface Reservation {
  readonly principal: Principal
  readonly microDollars: number
  /** Of the receipt that its settlement will write, unless that names another. */
  readonly receiptId: string
  readonly state: "open" | "settled" | "cancelled"
}

class OpenReservation implements Reservation {
  readonly principal: Principal
  readonly microDollars: number
  readonly balance: Balance
  readonly receiptId = newReceiptId()
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
  /** For work that may be repeated after a crash, e.g. a job's id: a receipt is written and charged once, ever. */
  readonly receiptId?: string
}

export class UsageLedger extends Context.Service<
  UsageLedger,
  {
    /**
     * Sets an estimate aside, or refuses an organization that has no payment method and not enough credits (none at
     * all: even for an estimate of 0). Cancelled when the scope closes, unless it was settled.
     */
    readonly reserve: (
      principal: Principal,
      estimateMicroDollars: number,
    ) => Effect.Effect<Reservation, PaymentRequired, Scope.Scope>
    /** Releases the reservation and charges what was used instead; the receipt's id. */
    readonly settle: (reservation: Reservation, settlement: Settlement) => Effect.Effect<string>
    readonly cancel: (reservation: Reservation) => Effect.Effect<void>
    /** What has been settled since the node started, by model of the catalog. */
    readonly settled: () => ReadonlyMap<string, Usage>
    /** Drops these models from `settled`: the catalog no longer has them. */
    readonly forgetSettled: (which: (model: string) => boolean) => void
    /** Writes all receipts that are on their way. */
    readonly flush: Effect.Effect<void, StoreUnavailable>
    /** What an organization used since a time (ms since 1970), by model, dearest first. */
    readonly usage: (
      orgId: string,
      sinceMs: number,
    ) => Effect.Effect<ReadonlyArray<ModelUsage>, StoreUnavailable>
    /** Its single receipts since then, the newest first. */
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
  /** One reader or writer of balances at a time, so that no read crosses a batch half way. */
  const database = yield* Semaphore.make(1)
  const waiting = yield* Latch.make(false)

  const balanceFor = (orgId: string): Balance => {
    const known = balances.get(orgId)
    if (known !== undefined) return known
    for (const [id, balance] of balances) {
      if (balances.size < maxBalances) break
      // The first is the longest known; one in use is kept, and looked past, until it is idle.
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

  /** All or nothing: what could not be written is on its way again, in front. */
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

  /** False where the receipt is lost to the store. */
  const putOnItsWay = Effect.fnUntraced(function* (receipt: Receipt) {
    if (unflushed.length >= maxUnflushed) yield* Effect.ignore(flushOnce)
    if (unflushed.length >= maxUnflushed) {
      // The database refuses to be written and the queue is full: the log line is the receipt then.
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

  /** Looks first. Read and decision are one synchronous step: between them the balance could be forgotten. */
  const lookAndDecide = (principal: Principal, microDollars: number) =>
    database.withPermit(
      Effect.flatMap(monotonicMs, (nowMs) => {
        const { orgId } = principal
        // Another request of this organization may have looked while this one waited.
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
  const cancel = (reservation: Reservation) => Effect.sync(() => void close(reservation, "cancelled"))

  return UsageLedger.of({
    reserve: (principal, estimateMicroDollars) =>
      // Not `acquireRelease`, which copies the map of all services when the scope closes; `cancel` needs none.
      Effect.uninterruptible(
        Effect.flatMap(Effect.scope, (scope) =>
          Effect.tap(
            Effect.flatMap(monotonicMs, (nowMs) => {
              const balance = balanceFor(principal.orgId)
              return isFresh(balance, nowMs)
                ? decide(principal, estimateMicroDollars, balance)
                : lookAndDecide(principal, estimateMicroDollars)
            }),
            (reservation) => Scope.addFinalizer(scope, cancel(reservation)),
          ),
        ),
      ),

    settle: (reservation, settlement) =>
      Effect.uninterruptible(
        Effect.flatMap(Clock.currentTimeMillis, (atMs) => {
          const receiptId = settlement.receiptId ?? reservation.receiptId
          const balance = close(reservation, "settled")
          if (balance === undefined) return Effect.succeed(receiptId)
          balance.unflushed += settlement.microDollars
          count(settlement.model, settlement.usage)
          const { orgId, userId, keyId } = reservation.principal
          const { model, usage, microDollars } = settlement
          const receipt = { receiptId, atMs, orgId, userId, keyId, model, usage, microDollars }
          return Effect.map(putOnItsWay(receipt), (isKept) => {
            // It will never be read back from the store, so the balance must not wait for it.
            if (!isKept) balance.unflushed -= microDollars
            return receiptId
          })
        }),
      ),

    cancel,

    settled: () => settled,
    forgetSettled: (which) => {
      for (const model of settled.keys()) if (which(model)) settled.delete(model)
    },

    flush: Effect.mapError(flushOnce, notWorking),

    usage: (orgId, sinceMs) =>
      Effect.mapError(Effect.andThen(flushOnce, rows.usage(orgId, sinceMs)), notWorking),

    receipts: (orgId, sinceMs, atMost) =>
      Effect.mapError(Effect.andThen(flushOnce, rows.receipts(orgId, sinceMs, atMost)), notWorking),
  })
})
