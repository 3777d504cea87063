// Fresh ids of receipts: one for every priced request, so they are cut from random bytes that are drawn in advance.
// Called by UsageLedger.
import { randomFillSync } from "node:crypto"

/** 96 random bits: unique without asking the table. */
const idBytes = 12
/** Ids drawn at a time: a draw from the system costs as much as a hundred of these (measured). */
const pooledIds = 256

const pool = Buffer.alloc(idBytes * pooledIds)
let at = pool.length

/** `rcpt_` and 24 lower-case hex digits. */
export const newReceiptId = (): string => {
  if (at === pool.length) {
    randomFillSync(pool)
    at = 0
  }
  at += idBytes
  return `rcpt_${pool.toString("hex", at - idBytes, at)}`
}
