// What several nodes on one database answer together: 1 to 3 nodes with the fake engine behind one router, measured in turn with as many
// nodes that share nothing, which is the ideal on the same machine. The statements of the nodes are counted by the database.
import { Effect, type Scope } from "effect"
import postgres from "postgres"
import { atLeast, besideFloor, figureOf, ofEach, type Part, readingsOf } from "#harness/report/Figure.ts"
import { runPostgres } from "../../test/support/servers/PostgresProcess.ts"
import { fakeModel } from "../operations/Models.ts"
import { ChildFailed, startChild } from "../support/Child.ts"
import type { Target } from "../support/Connection.ts"
import { startGateway, temporaryFolder } from "../support/Gateway.ts"
import { madeKey } from "../support/Keys.ts"
import { startLoadClient } from "../support/LoadClient.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import type { RouterCommands } from "./routerMain.ts"

export interface RegionPlan extends RoundsPlan {
  /** Of one loop. */
  readonly forMs: number
}

/** Requests of a node at a time. */
const slots = 16

/** A request takes 200 ms. */
const script = { tokens: 5, tokenMs: 40 }

const model = {
  ...fakeModel,
  options: { slots },
  price: { inputPerMillionTokens: 200_000, outputPerMillionTokens: 750_000 },
}

const body = { model: model.id, prompt: `fake:${JSON.stringify(script)}`, max_tokens: 100 }

const counts = [1, 2, 3] as const

const failed = (cause: unknown) => new ChildFailed({ child: "postgres", detail: String(cause) })

/** A server with durable commits that counts statements, and the number of them so far. */
const database = Effect.gen(function* () {
  const server = yield* Effect.acquireRelease(
    Effect.tryPromise({
      try: () =>
        runPostgres([
          "fsync=on",
          "shared_preload_libraries=pg_stat_statements",
          "pg_stat_statements.max=5000",
        ]),
      catch: failed,
    }),
    (running) => Effect.promise(running.remove),
  )
  const url = yield* Effect.tryPromise({ try: server.freshUrl, catch: failed })
  const sql = yield* Effect.acquireRelease(
    Effect.sync(() => postgres(url.split("?")[0] ?? "", { max: 1, onnotice: () => {} })),
    (open) => Effect.promise(() => open.end({ timeout: 1 })),
  )
  yield* Effect.tryPromise({ try: () => sql`CREATE EXTENSION pg_stat_statements`, catch: failed })
  const statements = Effect.tryPromise({
    try: async () => {
      const [row] = await sql<Array<{ readonly calls: number }>>`
        SELECT coalesce(sum(calls), 0)::float8 AS calls FROM pg_stat_statements
        WHERE query NOT LIKE '%pg_stat_statements%'`
      return row?.calls ?? 0
    },
    catch: failed,
  })
  return { url, statements }
})

export const throughput = (plan: RegionPlan): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { statements, url } = yield* database
    const apart = yield* Effect.forEach(counts, () => startGateway({ models: [model] }))
    const folder = yield* temporaryFolder
    const key = yield* Effect.tryPromise({
      try: () => madeKey(folder, "bench", "read-write", url),
      catch: (cause) => new ChildFailed({ child: "edgewise keys create", detail: String(cause) }),
    })
    const nodes = yield* Effect.forEach(counts, () =>
      startGateway({ models: [model], key, settings: { EDGEWISE_DATABASE_URL: url } }),
    )
    const router = yield* startChild<RouterCommands>({
      name: "router",
      entry: new URL("./routerMain.ts", import.meta.url),
    })
    const client = yield* startLoadClient
    const shared: Target = { port: yield* router.ask("port"), key }

    const loop = (target: Target, connections: number, forMs: number) =>
      client.ask("loop", { target, path: "/v1/completions", body, connections, forMs })
    /** So many nodes with stores of their own at once, each asked by its own connections. */
    const separately = (count: number, forMs: number) =>
      Effect.map(
        Effect.all(
          apart.slice(0, count).map(({ target }) => loop(target, slots, forMs)),
          { concurrency: "unbounded" },
        ),
        (loops) => loops.reduce((sum, { answers, elapsedMs }) => sum + (answers * 1000) / elapsedMs, 0),
      )
    const together = Effect.fnUntraced(function* (count: number, forMs: number) {
      yield* router.ask(
        "nodes",
        nodes.slice(0, count).map(({ target }) => target.port),
      )
      const before = yield* statements
      const { answers, elapsedMs } = yield* loop(shared, slots * count, forMs)
      return {
        perSecond: (answers * 1000) / elapsedMs,
        answers,
        elapsedMs,
        calls: (yield* statements) - before,
      }
    })

    // Warms up the code, loads the models, and is not counted.
    yield* separately(counts.length, 1_000)
    yield* together(counts.length, 1_000)
    const rounds = yield* repeatRounds(plan, () =>
      Effect.forEach(counts, (count) =>
        Effect.gen(function* () {
          const before = yield* statements
          const sinceMs = performance.now()
          const ideal = yield* separately(count, plan.forMs)
          // The nodes of the region do nothing meanwhile but what they always do.
          const idlePerMs = ((yield* statements) - before) / (performance.now() - sinceMs)
          const { answers, calls, elapsedMs, perSecond } = yield* together(count, plan.forMs)
          const own = Math.max(0, calls - idlePerMs * elapsedMs) / answers
          return { ideal, perSecond, calls: calls / answers, own, idlePerSecond: idlePerMs * 1000 }
        }),
      ),
    )
    const nodesOf = (count: number) => (count === 1 ? "1 node" : `${count} nodes`)
    const figures = counts.flatMap((count, at) => {
      const of = (name: string, unit: string, reading: (one: (typeof rounds)[number][number]) => number) =>
        ofEach(rounds, name, unit, (round) => reading(round[at]!))
      const ideal = of(`${nodesOf(count)} apart`, "1/s", (one) => one.ideal)
      const region = of(`${nodesOf(count)} on one database`, "1/s", (one) => one.perSecond)
      return [
        ...besideFloor(ideal, region, atLeast(0.9)),
        figureOf(of(`  statements a request of ${nodesOf(count)}`, "", (one) => one.calls)),
        figureOf(of(`  beyond those without requests of ${nodesOf(count)}`, "", (one) => one.own)),
      ]
    })
    return {
      title: "Nodes on one database: answers a second",
      method:
        `completions of ${script.tokens} tokens, ${script.tokenMs} ms each, by the fake engine with ${slots} slots; ${slots} ` +
        `connections for each node that is used, ${plan.forMs / 1000} s a reading. On one database: of three nodes on one PostgreSQL that syncs its ` +
        "commits, a prepaid organization, behind a router of TCP connections. Apart: as many with SQLite, asked directly. In turn",
      figures: [
        ...figures,
        figureOf(
          readingsOf(
            "statements without requests, three nodes",
            "1/s",
            rounds.flatMap((round) => round.map(({ idlePerSecond }) => idlePerSecond)),
          ),
        ),
      ],
    }
  })
