// The development key: made at the first start of an empty data directory and kept there for its owner alone, so that
// `npm start` can print a curl line that works. Called by `serve`; commands that merely open the store never make one.
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { Effect } from "effect"
import { apiKeyFrom, isApiKey, keyBytes } from "#domain/ApiKey.ts"
import { Accounts } from "./Accounts.ts"
import { onceFile, readOnceFile, removeOnceFile } from "./OnceFile.ts"
import { type InvalidName, StoreUnavailable } from "./StoreErrors.ts"

/** It has a payment method: nobody's first requests should meet a 402. */
const devOrg = "dev"

/**
 * The development key of a data directory, or undefined where there is none: the store had organizations before its
 * first start, or the key was revoked. The file is written before the row, so that a crash in between loses nothing:
 * the next start finds the file and registers it.
 */
export const developmentKey = Effect.fn("DevKey.developmentKey")(function* (
  dataDir: string,
): Effect.fn.Return<string | undefined, StoreUnavailable | InvalidName, Accounts> {
  const accounts = yield* Accounts
  const file = join(dataDir, "dev-key")
  let apiKey = yield* readOnceFile(file)
  const isFresh = apiKey === undefined
  if (apiKey === undefined) {
    if (!(yield* accounts.isEmpty)) return undefined
    apiKey = yield* onceFile(file, () => apiKeyFrom(randomBytes(keyBytes)))
  }
  if (!isApiKey(apiKey)) {
    return yield* new StoreUnavailable({ place: file, problem: "does not hold an API key; remove it" })
  }
  if (yield* accounts.adoptFirstKey(apiKey, devOrg)) return apiKey
  // Another node of the same store, or a command, was first: the key that was made just now is nobody's.
  if (isFresh) yield* removeOnceFile(file)
  return undefined
})
