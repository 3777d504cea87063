// The mistakes of the table that are made with a PostgreSQL server.
import { describe } from "vitest"
import { needs } from "../../support/groups/Needs.ts"
import { sharedPostgres } from "../../support/servers/PostgresServer.ts"
import { testMistakes } from "./Making.ts"
import { operatorMistakes } from "./Table.ts"

describe("with a database", needs("postgresql"), () => {
  testMistakes(
    operatorMistakes.filter((mistake) => mistake.needs === "Postgres"),
    sharedPostgres,
  )
})
