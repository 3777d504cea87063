// How long a client waits for its region at a thousand requests a second. The router is `edgewise serve --roles
// router` with the built-in regions; the clients are a process of their own (callersMain).
import { mkdtemp, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { Effect, type Scope } from "effect"
import { atMost, figure, type Part } from "#harness/report/Figure.ts"
import { type ChildFailed, startChild } from "../support/Child.ts"
import type { Commands } from "../support/CommandChannel.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import type { Call, Called } from "./callersMain.ts"

export interface RoutePlan extends RoundsPlan {
  readonly perSecond: number
  readonly seconds: number
}

type Callers = { readonly call: (call: Call) => Promise<Called> } & Commands

const folder = Effect.acquireRelease(
  Effect.promise(() => mkdtemp(join(tmpdir(), "edgewise-bench-"))),
  (path) => Effect.promise(() => rm(path, { recursive: true, force: true })),
)

/** The goal, milliseconds at the 99th percentile. */
const goal = atMost(2)

export const routing = (plan: RoutePlan): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const dataDir = join(yield* folder, "data")
    const router = yield* startChild({
      name: "edgewise serve --roles router",
      entry: new URL("../../src/main.ts", import.meta.url),
      args: ["serve", "--roles", "router", "--router-port", "0", "--data-dir", dataDir],
      env: {
        ...Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith("EDGEWISE_"))),
        EDGEWISE_EDGE_DOMAIN: "example.com",
        EDGEWISE_REGION: "phx-01",
        EDGEWISE_TRUSTED_PROXIES: "127.0.0.1",
        EDGEWISE_LOG: "json",
        EDGEWISE_LOG_LEVEL: "warn",
      },
    })
    const [, port] = yield* router.line(/router listening on http:\/\/[^\s]+:(\d+)/)
    const callers = yield* startChild<Callers>({
      name: "callers",
      entry: new URL("./callersMain.ts", import.meta.url),
    })
    const { perSecond, seconds } = plan
    const call = callers.ask("call", { port: Number(port), perSecond, seconds })
    // The first round warms up the code and is not counted.
    yield* call
    const rounds = yield* repeatRounds(plan, () => call)
    const of = (part: keyof Called) => rounds.map((round) => round[part])
    return {
      title: `GET /v1/route at ${perSecond} requests a second`,
      method:
        `callers of 32 countries, as a trusted proxy names them, on 16 connections for ${seconds} s a round; from the ` +
        "moment a request is handed to the kernel to its answer's last byte, in the callers' process",
      figures: [
        figure("answered a second", "1/s", of("perSecond")),
        figure("p50", "ms", of("p50")),
        figure("p99", "ms", of("p99"), goal),
        figure("longest", "ms", of("max")),
      ],
    }
  })
