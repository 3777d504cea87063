// The two transports against each other: the same node with uWebSockets.js and with Node's own server, alternately.
import { Effect, type Scope } from "effect"
import {
  atLeast,
  atMost,
  besideFloor,
  beyond,
  figureOf,
  type Part,
  readingsOf,
} from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import { startGateway } from "../support/Gateway.ts"
import { repeatRounds } from "../support/Rounds.ts"
import { chatPath, models, scriptedChat } from "./Models.ts"
import { type CostPlan, readCost } from "./RequestCost.ts"
import { latencyBlock, type OverheadPlan } from "./RequestOverhead.ts"
import type { Stage } from "./Stage.ts"

const goals = { rate: atLeast(0.5), addedMs: atMost(0.3) } as const

export const transports = (
  stage: Stage,
  { cost, overhead }: { readonly cost: CostPlan; readonly overhead: OverheadPlan },
): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const start = (transport: string) => startGateway({ models, settings: { EDGEWISE_TRANSPORT: transport } })
    const gateways = [yield* start("uws"), yield* start("node")]
    // The first request waits for the engine's start.
    const body = scriptedChat("fake-process", false, { tokens: 1 })
    yield* Effect.forEach(gateways, ({ target }) =>
      stage.client.ask("once", { target, path: chatPath, body }),
    )
    const round = (forMs: number, requests: number) =>
      Effect.forEach(gateways, (gateway) =>
        Effect.all({
          load: readCost(stage, gateway, cost.connections, forMs),
          alone: latencyBlock(stage, gateway.target, "fake-process", requests, overhead.blockMs),
        }),
      )
    yield* round(cost.warmUpMs, overhead.warmUp)
    const plan = { rounds: cost.rounds, withinMs: cost.withinMs + overhead.withinMs }
    const rounds = yield* repeatRounds(plan, () => round(cost.windowMs, overhead.requests))
    type Measured = (typeof rounds)[number][number]
    const of = (at: number, part: (measured: Measured) => number) =>
      rounds.map((each) => (each[at] === undefined ? Number.NaN : part(each[at])))
    const rate = ({ load }: Measured) => load.perSecond
    const cpu = ({ load }: Measured) => load.serverMs
    const p50 = ({ alone }: Measured) => alone.p50
    const pair = (what: string, unit: string, part: (measured: Measured) => number) =>
      [readingsOf(`uws, ${what}`, unit, of(0, part)), readingsOf(`node, ${what}`, unit, of(1, part))] as const
    const [uwsP50, nodeP50] = pair("p50", "ms", p50)
    return {
      title: "Node's own server against uWebSockets.js: chat, not streamed, one token, fake engine",
      method:
        `two nodes alternately; ${cost.connections} connections for the rates, one for the latencies ` +
        `(${overhead.requests} requests a block); ratios and differences are of one round`,
      figures: [
        ...besideFloor(...pair("answers a second", "1/s", rate), goals.rate),
        ...besideFloor(...pair("gateway process", "ms/request", cpu)),
        figureOf(uwsP50),
        figureOf(nodeP50),
        beyond(nodeP50, uwsP50, goals.addedMs),
      ],
    }
  })
