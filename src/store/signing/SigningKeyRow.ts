// The signing keys of nodes that share a database: one row, as the file of a single node's data directory is one text. A
// SigningKeyStore for SigningKeys. Any node's token is good at every other, and whoever may read the database may sign.
import { hash } from "node:crypto"
import { Effect } from "effect"
import { SqlClient } from "effect/sql"
import type { SqlError } from "effect/sql/SqlError"
import { notWorking, StoreUnavailable } from "../files/StoreErrors.ts"
import { encodeKeys, parseKeys, type SigningKeyStore } from "./SigningKeyStore.ts"

const place = "signing keys in the database"
const rowName = "signing_keys"

const orUnavailable = <A>(effect: Effect.Effect<A, SqlError | StoreUnavailable>) =>
  Effect.mapError(effect, (error) => (error instanceof StoreUnavailable ? error : notWorking(error)))

export const sharedSigningKeys = Effect.gen(function* () {
  const sql = yield* SqlClient.SqlClient

  const select = (lock: "" | "FOR UPDATE") =>
    Effect.map(
      sql<{ readonly value: string }>`SELECT value FROM meta WHERE name = ${rowName} ${sql.literal(lock)}`,
      ([row]) => row?.value,
    )

  const parse = (text: string) =>
    Effect.mapError(
      parseKeys(text),
      () => new StoreUnavailable({ place, problem: `${rowName} does not hold signing keys` }),
    )

  const holder: SigningKeyStore = {
    place,
    // The keys themselves stay in one place of this process's memory.
    version: orUnavailable(
      Effect.map(select(""), (text) => (text === undefined ? undefined : hash("sha256", text))),
    ),
    read: orUnavailable(
      Effect.flatMap(select(""), (text) => (text === undefined ? Effect.succeed([]) : parse(text))),
    ),
    // The row is there before it is locked, and its lock makes the nodes take turns: who comes second sees the first's key.
    change: (next) =>
      Effect.gen(function* () {
        yield* sql`
          INSERT INTO meta (name, value) VALUES (${rowName}, ${encodeKeys([])}) ON CONFLICT (name) DO NOTHING`
        const changed = yield* next(yield* parse((yield* select("FOR UPDATE")) ?? encodeKeys([])))
        if (changed !== undefined) {
          yield* sql`UPDATE meta SET value = ${encodeKeys(changed.keys)} WHERE name = ${rowName}`
        }
      }).pipe(sql.withTransaction, orUnavailable),
  }
  return holder
})
