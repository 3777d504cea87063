// Fresh identifiers, cut from a pool of random bytes, because one draw from the system costs as much as a hundred ids (measured). Pure;
// the random bytes come from the caller.

/** 96 random bits: unique without a query. */
const idBytes = 12
const pooledIds = 256

/** Each call of the function that it returns gives another id: 24 lower-case hex digits. */
export const freshIds = (random: (bytes: number) => Buffer): (() => string) => {
  let pool: Buffer = Buffer.alloc(0)
  let at = 0
  return () => {
    if (at === pool.length) {
      pool = random(idBytes * pooledIds)
      at = 0
    }
    at += idBytes
    return pool.toString("hex", at - idBytes, at)
  }
}
