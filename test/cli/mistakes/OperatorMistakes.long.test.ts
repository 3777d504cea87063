// Every mistake of the table, made with the real program: exactly its line, its exit status, no stack and no silence.
import { describe } from "vitest"
import { needs } from "../../support/groups/Needs.ts"
import { sharedPostgres } from "../../support/servers/PostgresServer.ts"
import { testMistakes } from "./Making.ts"
import { operatorMistakes } from "./Table.ts"

testMistakes(operatorMistakes.filter((mistake) => mistake.needs !== "Postgres"))

describe("with a database", needs("postgresql"), () => {
  testMistakes(
    operatorMistakes.filter((mistake) => mistake.needs === "Postgres"),
    sharedPostgres,
  )
})
