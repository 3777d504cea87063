// The id of this node among those that share a store. It is kept in the node's data directory. Which of them run, says
// src/store/nodes.
import { randomBytes } from "node:crypto"
import { join } from "node:path"
import { Context, Effect } from "effect"
import { base62 } from "#domain/access/ApiKey.ts"
import { StoreUnavailable } from "../files/StoreErrors.ts"
import { onceFile } from "../files/WriteOnceFile.ts"

/** The node's id. Empty if the store is not shared. */
export const StoreNode = Context.Reference<string>("edgewise/store/StoreNode", { defaultValue: () => "" })

/** No deletion waits for a node that has not been seen for this long by the database's clock. */
export const silentMs = 30_000

const shape = /^node_[0-9A-Za-z]+$/

/** The id kept in a data directory, made if there is none. It stays with the directory, as the uploads do. */
export const nodeIdOf = (dataDir: string): Effect.Effect<string, StoreUnavailable> => {
  const file = join(dataDir, "node-id")
  return Effect.filterOrFail(
    onceFile(file, () => `node_${base62(randomBytes(12), 17)}`),
    (id) => shape.test(id),
    () => new StoreUnavailable({ place: file, problem: "does not hold a node's id; remove it" }),
  )
}

/** Milliseconds since 1970 by the database's clock. */
export const databaseNow = "(EXTRACT(EPOCH FROM clock_timestamp()) * 1000)::BIGINT"
