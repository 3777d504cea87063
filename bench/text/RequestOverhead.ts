// Time that the gateway adds to a small request that is answered at once, against bare `node:http` and raw uWS, which
// collect and parse the same body and send the same JSON.
import { Effect } from "effect"
import { percentile } from "#harness/figures/Statistics.ts"
import { figure, type Part } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import type { Target } from "../support/Connection.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { chatPath, scriptedChat } from "./Models.ts"
import { type Stage, teachFloors } from "./Stage.ts"

export interface OverheadPlan extends RoundsPlan {
  /** Requests before the measurement: V8 continues to compile the path for some thousands. */
  readonly warmUp: number
  /** Longest time of a block, milliseconds: a machine that is busy with other work answers a hundred times slower. */
  readonly blockMs: number
  /** Sequential requests of one block. */
  readonly requests: number
}

interface Block {
  readonly p50: number
  readonly p95: number
  readonly p99: number
}

export const latencyBlock = (
  { client }: Stage,
  target: Target,
  model: string,
  count: number,
  withinMs: number,
): Effect.Effect<Block, ChildFailed> =>
  Effect.gen(function* () {
    const body = scriptedChat(model, false, { tokens: 1 })
    const latencies = yield* client.ask("sequence", { target, path: chatPath, body, count, withinMs })
    return {
      p50: percentile(latencies, 0.5),
      p95: percentile(latencies, 0.95),
      p99: percentile(latencies, 0.99),
    }
  })

const addedGoal = { is: "at most", value: 0.25 } as const

export const requestOverhead = (stage: Stage, plan: OverheadPlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    yield* teachFloors(stage, 0)
    const { bareNode, gateway, raw: uws } = stage
    const subjects = [
      { target: bareNode.target, model: "" },
      { target: uws.target, model: "" },
      { target: gateway.target, model: "fake-process" },
      { target: gateway.target, model: "fake-thread" },
    ]
    const blocks = (count: number) =>
      Effect.forEach(subjects, ({ model, target }) => latencyBlock(stage, target, model, count, plan.blockMs))
    yield* blocks(plan.warmUp)
    const rounds = yield* repeatRounds(plan, () => blocks(plan.requests))
    const of = (at: number) => rounds.flatMap((round) => round[at] ?? [])
    const [node, raw, isolated, threaded] = [of(0), of(1), of(2), of(3)]
    const added = (subject: ReadonlyArray<Block>, floor: ReadonlyArray<Block>, which: keyof Block) =>
      subject.map((taken, at) => taken[which] - (floor[at]?.[which] ?? Number.NaN))
    return {
      title: "Overhead of a request: chat, not streamed, one token, fake engine",
      method:
        `${plan.requests} requests one after the other on one keep-alive connection, the servers alternately; ` +
        "added is the gateway's percentile of a block less that of the floor's block in the same round",
      figures: [
        figure(
          "bare node:http, p50",
          "ms",
          node.map(({ p50 }) => p50),
        ),
        figure(
          "raw uWS, p50",
          "ms",
          raw.map(({ p50 }) => p50),
        ),
        figure(
          "gateway (engine in a process), p50",
          "ms",
          isolated.map(({ p50 }) => p50),
        ),
        figure("  added to bare node:http, p50", "ms", added(isolated, node, "p50"), addedGoal),
        figure("  p95", "ms", added(isolated, node, "p95")),
        figure("  p99", "ms", added(isolated, node, "p99")),
        figure("  added to raw uWS, p50", "ms", added(isolated, raw, "p50"), addedGoal),
        figure(
          "gateway with engine thread, added to bare node:http, p50",
          "ms",
          added(threaded, node, "p50"),
        ),
      ],
    }
  })
