// Fresh identifiers for answers, as a service so that tests may choose them.
import { randomBytes } from "node:crypto"
import { Context } from "effect"

/** 96 random bits. */
const idBytes = 12
/** Ids drawn at a time: one draw of random bytes from the system costs as much as a hundred of these ids. */
const pooledIds = 256

/** 24 lower-case hex digits. */
export const NewId = Context.Reference<() => string>("edgewise/api/NewId", {
  defaultValue: () => {
    let pool = randomBytes(0)
    let at = 0
    return () => {
      if (at === pool.length) {
        pool = randomBytes(idBytes * pooledIds)
        at = 0
      }
      at += idBytes
      return pool.toString("hex", at - idBytes, at)
    }
  },
})
