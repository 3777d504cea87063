// The balances that a node decides by, and how a batch of receipts changes them: on a store of its own each is the whole balance
// (WholeBalances), on a shared store it is what this node has leased (LeasedBalances).
import type { Effect } from "effect"
import type { SqlError } from "effect/sql/SqlError"
import type { PaymentRequired } from "#domain/wire/Errors.ts"
import type { Balance } from "./Balance.ts"
import type { Receipt } from "./LedgerRows.ts"

/** Balances in memory that are not in use, at most. A guess: 10,000 take about 2 MB. */
const maxBalances = 10_000

export interface Balances {
  /** Sets an amount aside. If the database must be asked and does not answer, the effect dies. */
  readonly reserve: (orgId: string, microDollars: number) => Effect.Effect<Balance, PaymentRequired>
  /** A reservation has ended: others may be waiting for its money. */
  readonly released: (balance: Balance) => void
  /** Writes and charges a batch, all or nothing. Of an empty one: only what else there is to say to the database, if anything. */
  readonly write: (batch: ReadonlyArray<Receipt>) => Effect.Effect<void, SqlError>
  /** Writes and charges one receipt together with `change`, all or nothing; nothing if that gives false. True if it was done. */
  readonly writeIf: (
    receipt: Receipt,
    change: Effect.Effect<boolean, SqlError>,
  ) => Effect.Effect<boolean, SqlError>
}

/** The balance of an organization, made if there is none. The oldest ones that nothing depends on make room for it. */
export const balanceIn = <B extends Balance>(
  balances: Map<string, B>,
  orgId: string,
  fresh: (orgId: string) => B,
  isIdle: (balance: B) => boolean,
): B => {
  const known = balances.get(orgId)
  if (known !== undefined) return known
  for (const [id, balance] of balances) {
    if (balances.size < maxBalances) break
    // The map is in insertion order, oldest first. A balance in use is skipped until it is idle.
    if (isIdle(balance)) balances.delete(id)
  }
  const made = fresh(orgId)
  balances.set(orgId, made)
  return made
}
