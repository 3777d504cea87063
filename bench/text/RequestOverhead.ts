// Time that the gateway adds to a small request that is answered at once, against bare `node:http` and raw uWS, which
// collect and parse the same body and send the same JSON.
import { Effect } from "effect"
import { percentile } from "#harness/figures/Statistics.ts"
import { atMost, beyond, figureOf, type Part, type Readings, readingsOf } from "#harness/report/Figure.ts"
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

const addedGoal = atMost(0.25)

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
    const block = (at: number, name: string, which: keyof Block): Readings =>
      readingsOf(
        `${name}, ${which}`,
        "ms",
        of(at).map((taken) => taken[which]),
      )
    const bare = (which: keyof Block) => block(0, "bare node:http", which)
    const isolated = (which: keyof Block) => block(2, "gateway (engine in a process)", which)
    const raw = block(1, "raw uWS", "p50")
    const threaded = block(3, "gateway with engine thread", "p50")
    return {
      title: "Overhead of a request: chat, not streamed, one token, fake engine",
      method:
        `${plan.requests} requests one after the other on one keep-alive connection, the servers alternately; ` +
        "beyond a floor: the gateway's percentile of a block less that of the floor's block in the same round",
      figures: [
        figureOf(bare("p50")),
        figureOf(raw),
        figureOf(isolated("p50")),
        beyond(isolated("p50"), bare("p50"), addedGoal),
        beyond(isolated("p95"), bare("p95")),
        beyond(isolated("p99"), bare("p99")),
        beyond(isolated("p50"), raw, addedGoal),
        figureOf(threaded),
        beyond(threaded, bare("p50")),
      ],
    }
  })
