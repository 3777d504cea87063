// A copy of a data directory that runs as a second node of the same id on a shared database is noticed by both, in one line a minute. A
// restart, and another process on the same directory, are none.
import { copyFileSync } from "node:fs"
import { join } from "node:path"
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { Effect, Layer } from "effect"
import { TestClock } from "effect/testing"
import { storeLayer } from "#store/Store.ts"
import { needs } from "../../support/groups/Needs.ts"
import { collectLines } from "../../support/process/LogLines.ts"
import { type PostgresServer, startPostgres } from "../../support/servers/PostgresServer.ts"
import { tempDir } from "../TempDir.ts"

describe("two nodes of one id", needs("postgresql"), () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server?.remove())

  /** Opens a node's store; `said` are its lines about a copy. */
  const open = Effect.fnUntraced(function* (databaseUrl: string, dataDir: string) {
    const { layer, lines } = collectLines()
    yield* Layer.build(Layer.fresh(storeLayer({ dataDir, databaseUrl })).pipe(Layer.provide(layer)))
    return () =>
      lines.filter(({ message }) =>
        JSON.stringify(message).includes("another data directory runs as this node"),
      )
  })

  /** One heartbeat of each store, as far as the database answers meanwhile. */
  const beat = Effect.andThen(
    TestClock.adjust("5 seconds"),
    Effect.promise(() => new Promise((resolve) => setTimeout(resolve, 100))),
  )

  it.effect("are noticed where one directory is a copy of the other", () =>
    Effect.gen(function* () {
      const url = yield* Effect.promise(() => server.freshUrl())
      const [one, other] = [yield* tempDir, yield* tempDir]
      const inOne = yield* open(url, one)
      copyFileSync(join(one, "node-id"), join(other, "node-id"))
      const inOther = yield* open(url, other)
      for (let nth = 0; nth < 6; nth++) yield* beat
      expect([inOne().length, inOther().length]).toEqual([1, 1])
      expect(inOne()[0]?.annotations).toEqual({ node: expect.stringMatching(/^node_/) })
    }).pipe(Effect.scoped),
  )

  it.effect("are not those that share a directory, nor a node that was started again", () =>
    Effect.gen(function* () {
      const url = yield* Effect.promise(() => server.freshUrl())
      const dataDir = yield* tempDir
      yield* Effect.scoped(Effect.andThen(open(url, dataDir), beat))
      const [edge, auth] = [yield* open(url, dataDir), yield* open(url, dataDir)]
      for (let nth = 0; nth < 4; nth++) yield* beat
      expect([...edge(), ...auth()]).toEqual([])
    }).pipe(Effect.scoped),
  )
})
