// Nodes on one database know from each other's counters who runs: one that stops is found, and a database that was away makes no node
// look dead, whatever its clock shows.
import { afterAll, beforeAll, describe, expect, it } from "@effect/vitest"
import { Context, Effect, Exit, Layer, Scope } from "effect"
import { SqlClient } from "effect/sql"
import { TestClock } from "effect/testing"
import { Presence, type PresenceView, stillDead } from "#store/nodes/Presence.ts"
import { storeLayer } from "#store/Store.ts"
import { StoreNode } from "#store/sql/StoreNode.ts"
import { needs } from "../../support/groups/Needs.ts"
import { eventually } from "../../support/nodes/TestNode.ts"
import { type PostgresServer, startPostgres } from "../../support/servers/PostgresServer.ts"
import { tempDir } from "../TempDir.ts"

describe("nodes on one database", needs("postgresql"), () => {
  let server: PostgresServer
  beforeAll(async () => {
    server = await startPostgres()
  })
  afterAll(() => server?.remove())

  /** A node's store in a scope of its own. */
  const open = Effect.fnUntraced(function* (databaseUrl: string) {
    const dataDir = yield* tempDir
    const scope = yield* Scope.make()
    yield* Effect.addFinalizer((exit) => Scope.close(scope, exit))
    const services = yield* Layer.buildWithScope(Layer.fresh(storeLayer({ dataDir, databaseUrl })), scope)
    return {
      presence: Context.get(services, Presence),
      sql: Context.get(services, SqlClient.SqlClient),
      stop: Scope.close(scope, Exit.void),
    }
  })
  /** One beat of each of these nodes. */
  const beatOf = (...nodes: ReadonlyArray<{ readonly presence: PresenceView }>) =>
    Effect.gen(function* () {
      const before = nodes.map(({ presence }) => presence.beats())
      yield* TestClock.adjust("3 seconds")
      const done = () => nodes.every(({ presence }, nth) => presence.beats() > before[nth]!)
      yield* Effect.promise(() => eventually(done, "each has beaten"))
    })

  it.effect("know who has stopped after six beats, and that it runs again after one", () =>
    Effect.gen(function* () {
      const url = yield* Effect.promise(() => server.freshUrl())
      const [one, two, three] = [yield* open(url), yield* open(url), yield* open(url)]
      one.presence.offers(() => ({ address: "10.0.0.1:80", models: ["stt"], freeSlots: 2 }))
      yield* beatOf(one, two, three)
      yield* beatOf(one, two, three)
      expect([one, two, three].map(({ presence }) => presence.living())).toEqual([3, 3, 3])
      expect(two.presence.others().map(({ offer }) => offer)).toContainEqual({
        address: "10.0.0.1:80",
        models: ["stt"],
        freeSlots: 2,
      })
      yield* three.stop
      for (let nth = 0; nth < 4; nth++) yield* beatOf(one, two)
      expect(one.presence.living()).toBe(3)
      yield* beatOf(one, two)
      yield* beatOf(one, two)
      expect([one, two].map(({ presence }) => presence.living())).toEqual([2, 2])
      const dead = yield* one.presence.dead
      expect(dead).toHaveLength(1)
      expect(yield* stillDead(one.sql, dead)).toHaveLength(1)
      // It beats again before the statement that would take something from it.
      yield* one.sql`UPDATE nodes SET beat = beat + 1 WHERE id = ${dead[0]?.id ?? ""}`
      expect(yield* stillDead(one.sql, dead)).toHaveLength(0)
      yield* beatOf(one, two)
      expect([one, two].map(({ presence }) => presence.living())).toEqual([3, 3])
    }).pipe(Effect.scoped),
  )

  it.effect("all live after the database was away, and after its clock has jumped", () =>
    Effect.gen(function* () {
      const url = yield* Effect.promise(() => server.freshUrl())
      const [one, two] = [yield* open(url), yield* open(url)]
      yield* beatOf(one, two)
      yield* Effect.promise(server.kill)
      for (let nth = 0; nth < 20; nth++) yield* TestClock.adjust("3 seconds")
      yield* Effect.promise(server.start)
      const stored = Effect.all([one.sql`SELECT 1`, two.sql`SELECT 1`])
      yield* Effect.promise(() =>
        eventually(() => Effect.runPromise(Effect.isSuccess(stored)), "both reach the database again"),
      )
      // At the first of these, the counter of the one that beats later has stood still for a minute.
      for (let nth = 0; nth < 3; nth++) {
        yield* beatOf(one, two)
        expect([...(yield* one.presence.dead), ...(yield* two.presence.dead)]).toEqual([])
      }
      yield* one.sql`UPDATE nodes SET seen_at_ms = seen_at_ms - 90000000::BIGINT`
      yield* beatOf(one, two)
      expect([one, two].map(({ presence }) => presence.living())).toEqual([2, 2])
    }).pipe(Effect.scoped),
  )
})

describe("a store of its own", () => {
  it.effect("has one node, which is not dead", () =>
    Effect.gen(function* () {
      const presence = yield* Presence
      expect([yield* StoreNode, presence.living(), presence.others(), yield* presence.dead]).toEqual([
        "",
        1,
        [],
        [],
      ])
    }),
  )
})
