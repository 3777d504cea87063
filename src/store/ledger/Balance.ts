// The arithmetic of one organization's balance between two looks at the database. Used by the usage ledger; pure but
// for the fields it changes, every change in one synchronous step, so no two requests can ever spend the same money.
export interface Balance {
  readonly orgId: string
  /** Credits as the database last said, micro-dollars. */
  credits: number
  /** Is invoiced, and therefore never refused. */
  paymentMethod: boolean
  /** Charged by requests that are done, on their way to the database. */
  unflushed: number
  /** Set aside for requests that still run. */
  reserved: number
  /** Reservations not settled or cancelled yet; while there are any, this object must not be forgotten. */
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

/** Sets `amount` aside if the organization can pay for it. Without a cent it can't, not even for nothing. */
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
 * What the database says, nothing where it has no such organization (any more): `flushed` micro-dollars of what was
 * on its way have arrived and are in `credits` now.
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
