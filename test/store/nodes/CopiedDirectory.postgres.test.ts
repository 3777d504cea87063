// A copy of a data directory would run as a second node of the same id on a shared database. It is refused at its start, in one line. A
// restart, a directory that has moved, and another process on the same directory are not.
import { copyFileSync } from "node:fs"
import { join } from "node:path"
import { setImmediate } from "node:timers/promises"
import { beforeAll, describe, expect, it } from "@effect/vitest"
import { Context, Effect, Exit, Fiber, Layer, Scope } from "effect"
import { TestClock } from "effect/testing"
import { Presence, type PresenceView } from "#store/nodes/Presence.ts"
import { storeLayer } from "#store/Store.ts"
import { needs } from "../../support/groups/Needs.ts"
import { eventually } from "../../support/nodes/TestNode.ts"
import { collectLines } from "../../support/process/LogLines.ts"
import { type PostgresServer, sharedPostgres } from "../../support/servers/PostgresServer.ts"
import { tempDir } from "../TempDir.ts"

describe("two nodes of one id", needs("postgresql"), () => {
  let server: Pick<PostgresServer, "freshUrl">
  beforeAll(async () => {
    server = await sharedPostgres()
  })

  /** Opens a node's store; `said` has its lines about a copy. */
  interface Opened {
    readonly presence: PresenceView
    readonly said: () => ReadonlyArray<unknown>
  }
  const open = Effect.fnUntraced(function* (databaseUrl: string, dataDir: string) {
    const { layer, lines } = collectLines()
    const services = yield* Layer.build(
      Layer.fresh(storeLayer({ dataDir, databaseUrl })).pipe(Layer.provide(layer)),
    )
    const said = () =>
      lines.filter(({ message }) =>
        JSON.stringify(message).includes("another data directory runs as this node"),
      )
    const opened: Opened = { presence: Context.get(services, Presence), said }
    return opened
  })

  /** One beat of each of these stores. */
  const beatOf = (...stores: ReadonlyArray<Opened>) =>
    Effect.gen(function* () {
      const before = stores.map(({ presence }) => presence.beats())
      yield* TestClock.adjust("3 seconds")
      const done = () => stores.every(({ presence }, nth) => presence.beats() > before[nth]!)
      yield* Effect.promise(() => eventually(done, "each has beaten"))
    })
  /** Opens a node's store while time passes, a beat of these others at a time. */
  const opening = Effect.fnUntraced(function* (
    databaseUrl: string,
    dataDir: string,
    ...others: ReadonlyArray<Opened>
  ) {
    const fiber = yield* Effect.forkScoped(Effect.exit(open(databaseUrl, dataDir)))
    while (fiber.pollUnsafe() === undefined) {
      yield* beatOf(...others)
      yield* Effect.promise(() => setImmediate())
    }
    return yield* Fiber.join(fiber)
  })
  const copyOf = Effect.fnUntraced(function* (dataDir: string) {
    const copy = yield* tempDir
    copyFileSync(join(dataDir, "node-id"), join(copy, "node-id"))
    return copy
  })

  it.effect("cannot both run where one directory is a copy of the other", () =>
    Effect.gen(function* () {
      const url = yield* Effect.promise(() => server.freshUrl())
      const one = yield* tempDir
      const inOne = yield* open(url, one)
      const copy = yield* copyOf(one)
      const refused = yield* opening(url, copy, inOne)
      expect(Exit.isFailure(refused) ? String(Exit.findErrorOption(refused)) : "opened").toMatch(
        /node-id: node_\w+ runs on another data directory, of which this one is a copy; remove this file, or stop that node/,
      )
      yield* beatOf(inOne)
      expect(inOne.said()).toEqual([])
    }).pipe(Effect.scoped),
  )

  it.effect("can follow each other: a directory that has moved opens once the other's node is gone", () =>
    Effect.gen(function* () {
      const url = yield* Effect.promise(() => server.freshUrl())
      const one = yield* tempDir
      const first = yield* Scope.make()
      yield* Scope.provide(open(url, one), first)
      const moved = yield* copyOf(one)
      yield* Scope.close(first, Exit.void)
      expect(Exit.isSuccess(yield* opening(url, moved))).toBe(true)
    }).pipe(Effect.scoped),
  )

  it.effect("are not those that share a directory, nor a node that was started again", () =>
    Effect.gen(function* () {
      const url = yield* Effect.promise(() => server.freshUrl())
      const dataDir = yield* tempDir
      yield* Effect.scoped(Effect.flatMap(open(url, dataDir), (store) => beatOf(store)))
      const [edge, auth] = [yield* open(url, dataDir), yield* open(url, dataDir)]
      for (let nth = 0; nth < 3; nth++) yield* beatOf(edge, auth)
      expect([...edge.said(), ...auth.said()]).toEqual([])
    }).pipe(Effect.scoped),
  )
})
