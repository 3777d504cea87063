// A SigningKeyStore in one row of a shared database. A token of one node is valid at all nodes, and anyone who can read
// the database can sign tokens.
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
    // A hash, so that the keys are not held in memory a second time.
    version: orUnavailable(
      Effect.map(select(""), (text) => (text === undefined ? undefined : hash("sha256", text))),
    ),
    read: orUnavailable(
      Effect.flatMap(select(""), (text) => (text === undefined ? Effect.succeed([]) : parse(text))),
    ),
    // The row is inserted before it is locked: an insert cannot lock what is not there. The lock serializes the nodes,
    // so the second one sees the first one's key.
    change: (next) =>
      Effect.gen(function* () {
        yield* sql`
          INSERT INTO meta (name, value) VALUES (${rowName}, ${encodeKeys([])}) ON CONFLICT (name) DO NOTHING`
        const changed = yield* next(yield* parse((yield* select("FOR UPDATE")) ?? encodeKeys([])))
        if (changed !== undefined)
          yield* sql`UPDATE meta SET value = ${encodeKeys(changed)} WHERE name = ${rowName}`
      }).pipe(sql.withTransaction, orUnavailable),
  }
  return holder
})
