// Fresh receipt ids. Every priced request needs one, so they are cut from a pool of random bytes.
import { randomFillSync } from "node:crypto"

/** 96 random bits: unique without a query. */
const idBytes = 12
/** Ids per draw. One draw from the system costs as much as a hundred ids from the pool (measured). */
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
