// Balances of a node that has its store alone: it decides by the whole balance of an organization, which it reads again when what it
// knows is two seconds old, because a command may have added credits.
import { Effect, type Semaphore } from "effect"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { PaymentRequired } from "#domain/wire/Errors.ts"
import { type Balance, isIdle, newBalance, readBack, tryReserve } from "./Balance.ts"
import { type Balances, balanceIn } from "./Balances.ts"
import { chargesByOrg, type LedgerRows } from "./LedgerRows.ts"

/** Longest age of a cached balance. Protocol 5.2 allows 5 s until new credit is noticed. */
const balanceLifeMs = 2000

/** `database` serializes reads and writes of balances, so that no read sees half a batch; `write` runs with its permit. */
export const wholeBalances = (rows: LedgerRows, database: Semaphore.Semaphore): Balances => {
  const balances = new Map<string, Balance>()
  const balanceFor = (orgId: string) => balanceIn(balances, orgId, newBalance, isIdle)
  const isFresh = (balance: Balance, nowMs: number) => nowMs - balance.readAtMs < balanceLifeMs

  const decide = (microDollars: number, balance: Balance) =>
    tryReserve(balance, microDollars) ? Effect.succeed(balance) : Effect.fail(new PaymentRequired())

  /**
   * Reads the balance if it is too old, then decides. Applying the read and deciding are one synchronous step, because
   * the balance could leave the cache in between.
   */
  const readAndDecide = (orgId: string, microDollars: number) =>
    database.withPermit(
      Effect.flatMap(monotonicMs, (nowMs) => {
        // Another request of this organization may have read it while this one waited.
        const known = balanceFor(orgId)
        if (isFresh(known, nowMs)) return decide(microDollars, known)
        return Effect.flatMap(Effect.orDie(rows.balance(orgId)), (row) => {
          const balance = balanceFor(orgId)
          readBack(balance, row, 0, nowMs)
          return decide(microDollars, balance)
        })
      }),
    )

  return {
    reserve: (orgId, microDollars) =>
      Effect.flatMap(monotonicMs, (nowMs) => {
        const balance = balanceFor(orgId)
        return isFresh(balance, nowMs) ? decide(microDollars, balance) : readAndDecide(orgId, microDollars)
      }),
    released: () => {},
    write: (batch) =>
      batch.length === 0
        ? Effect.void
        : Effect.flatMap(rows.write(batch), (written) =>
            Effect.map(monotonicMs, (nowMs) => {
              for (const [orgId, charge] of chargesByOrg(batch)) {
                const row = written.find((balance) => balance.orgId === orgId)
                readBack(balanceFor(orgId), row, charge, nowMs)
              }
            }),
          ),
    writeIf: (receipt, change) =>
      Effect.flatMap(rows.writeIf(receipt, change), (written) =>
        Effect.map(monotonicMs, (nowMs) => {
          if (written === undefined) return false
          readBack(
            balanceFor(receipt.orgId),
            written.find(({ orgId }) => orgId === receipt.orgId),
            0,
            nowMs,
          )
          return true
        }),
      ),
  }
}
