// The arithmetic of one organization's balance between two reads of the database. Every change is one synchronous step,
// so two requests can never spend the same money.
export interface Balance {
  readonly orgId: string
  /**
   * Credits as last read from the database, micro-dollars. On a store that nodes share: the part that is leased to this node
   * (see Lease).
   */
  credits: number
  /** The organization is invoiced and therefore never refused. */
  paymentMethod: boolean
  /** Charged by completed requests and not yet in the database. */
  unflushed: number
  /** Set aside for running requests. */
  reserved: number
  /** Reservations neither settled nor cancelled. While there are any, this object must stay cached. */
  open: number
  readAtMs: number
}

export const newBalance = (orgId: string): Balance => ({
  orgId,
  credits: 0,
  paymentMethod: false,
  unflushed: 0,
  reserved: 0,
  open: 0,
  readAtMs: Number.NEGATIVE_INFINITY,
})

export const isIdle = (balance: Balance): boolean => balance.open === 0 && balance.unflushed === 0

/** Sets `amount` aside if the organization can pay for it. Without any credit it cannot, even for an amount of 0. */
export const tryReserve = (balance: Balance, amount: number): boolean => {
  const left = balance.credits - balance.unflushed
  if (!balance.paymentMethod && (left <= 0 || left - balance.reserved < amount)) return false
  balance.reserved += amount
  balance.open++
  return true
}

export const release = (balance: Balance, amount: number): void => {
  balance.reserved -= amount
  balance.open--
}

/**
 * Applies a read of the database; `row` is undefined if the organization does not exist. `flushed` micro-dollars that
 * were unflushed are in `credits` now.
 */
export const readBack = (
  balance: Balance,
  row: { readonly credits: number; readonly paymentMethod: boolean } | undefined,
  flushed: number,
  atMs: number,
): void => {
  balance.credits = row?.credits ?? 0
  balance.paymentMethod = row?.paymentMethod ?? false
  balance.unflushed -= flushed
  balance.readAtMs = atMs
}
