// The two transports against each other: the same node with uWebSockets.js and with Node's own server, alternately.
import { Effect, type Scope } from "effect"
import { pairedRatios } from "#harness/figures/Statistics.ts"
import { figure, type Part } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import { startGateway } from "../support/Gateway.ts"
import { repeatRounds } from "../support/Rounds.ts"
import { chatPath, models, scriptedChat } from "./Models.ts"
import { type CostPlan, readCost } from "./RequestCost.ts"
import { latencyBlock, type OverheadPlan } from "./RequestOverhead.ts"
import type { Stage } from "./Stage.ts"

const goals = { rate: { is: "at least", value: 0.5 }, addedMs: { is: "at most", value: 0.3 } } as const

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
    const added = of(1, p50).map((ms, at) => ms - (of(0, p50)[at] ?? Number.NaN))
    return {
      title: "Node's own server against uWebSockets.js: chat, not streamed, one token, fake engine",
      method:
        `two nodes alternately; ${cost.connections} connections for the rates, one for the latencies ` +
        `(${overhead.requests} requests a block); ratios and differences are of one round`,
      figures: [
        figure("uws, answers a second", "1/s", of(0, rate)),
        figure("node, answers a second", "1/s", of(1, rate)),
        figure("  over uws", "x", pairedRatios(of(1, rate), of(0, rate)), goals.rate),
        figure("uws, gateway process", "ms/request", of(0, cpu)),
        figure("node, gateway process", "ms/request", of(1, cpu)),
        figure("uws, p50", "ms", of(0, p50)),
        figure("node, p50", "ms", of(1, p50)),
        figure("  added to uws, p50", "ms", added, goals.addedMs),
      ],
    }
  })
