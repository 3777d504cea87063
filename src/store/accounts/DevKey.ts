// The development key: made at the first start on an empty data directory and kept in a file there that only the owner
// can read, so that `npm start` can print a working curl command. Only `serve` makes one; commands that open the store
// do not.
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { Effect } from "effect"
import { apiKeyFrom, isApiKey, keyBytes } from "#domain/access/ApiKey.ts"
import { StoreUnavailable } from "../files/StoreErrors.ts"
import { onceFile, readOnceFile, removeOnceFile } from "../files/WriteOnceFile.ts"
import { Accounts, type Org } from "./Accounts.ts"

export interface DevelopmentKey {
  readonly apiKey: string
  readonly org: Org
}

const fileIn = (dataDir: string): string => join(dataDir, "dev-key")

/**
 * The development key of a data directory. Undefined if the store had organizations before its first start, or if the
 * key was revoked. The file is written before the row, so a crash in between loses nothing: the next start finds the
 * file and registers its key.
 */
export const developmentKey = Effect.fn("DevKey.developmentKey")(function* (
  dataDir: string,
): Effect.fn.Return<DevelopmentKey | undefined, StoreUnavailable, Accounts> {
  const accounts = yield* Accounts
  const file = fileIn(dataDir)
  let apiKey = yield* readOnceFile(file)
  const isFresh = apiKey === undefined
  if (apiKey === undefined) {
    if (!(yield* accounts.isEmpty)) return undefined
    apiKey = yield* onceFile(file, () => apiKeyFrom(randomBytes(keyBytes)))
  }
  if (!isApiKey(apiKey)) {
    return yield* new StoreUnavailable({ place: file, problem: "does not hold an API key; remove it" })
  }
  const org = yield* accounts.adoptDevelopmentKey(apiKey)
  if (org !== undefined) return { apiKey, org }
  // Another node of the same store, or a command, made the first organization: the new key is not registered.
  if (isFresh) yield* removeOnceFile(file)
  return undefined
})

/** True if an earlier start left a live development key in the data directory. */
export const hasDevelopmentKey = (dataDir: string): Effect.Effect<boolean, StoreUnavailable, Accounts> =>
  Effect.gen(function* () {
    const apiKey = yield* readOnceFile(fileIn(dataDir))
    if (apiKey === undefined || !isApiKey(apiKey)) return false
    // Also marks a key that an earlier version registered without the mark.
    return (yield* (yield* Accounts).markDevelopmentKey(apiKey)) !== undefined
  })
