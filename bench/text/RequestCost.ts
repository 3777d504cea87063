// CPU time of a request in the gateway, and requests a second on one core, against bare `node:http` that parses
// the same body and sends the same reply.
import { Effect } from "effect"
import { atLeast, atMost, besideFloor, figure, type Part, readingsOf } from "#harness/report/Figure.ts"
import type { Child, ChildFailed } from "../support/Child.ts"
import type { Target } from "../support/Connection.ts"
import type { ProbeCommands } from "../support/Probe.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { chatPath, scriptedChat } from "./Models.ts"
import { type Stage, teachFloors } from "./Stage.ts"

export interface CostPlan extends RoundsPlan {
  readonly connections: number
  /** Milliseconds of load before the first round: V8 continues to compile the path for some thousands of requests. */
  readonly warmUpMs: number
  readonly windowMs: number
}

interface Subject {
  readonly child: Child<ProbeCommands>
  readonly target: Target
  readonly engineCpuUs: Effect.Effect<number>
}

interface Reading {
  /** CPU time of a request, milliseconds: of the server process, and of its engine processes. */
  readonly serverMs: number
  readonly engineMs: number
  readonly perSecond: number
}

const usPerMs = 1_000

export const readCost = (
  { client }: Stage,
  { child, engineCpuUs, target }: Subject,
  connections: number,
  forMs: number,
): Effect.Effect<Reading, ChildFailed> =>
  Effect.gen(function* () {
    const body = scriptedChat("fake-process", false, { tokens: 1 })
    const before = yield* child.ask("cpu")
    const engineBeforeUs = yield* engineCpuUs
    const { answers, elapsedMs } = yield* client.ask("loop", {
      target,
      path: chatPath,
      body,
      connections,
      forMs,
    })
    const after = yield* child.ask("cpu")
    return {
      serverMs: (after.cpuUs - before.cpuUs) / answers / usPerMs,
      engineMs: ((yield* engineCpuUs) - engineBeforeUs) / answers / usPerMs,
      perSecond: (answers / elapsedMs) * 1_000,
    }
  })

export const requestCost = (stage: Stage, plan: CostPlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    yield* teachFloors(stage, 0)
    const { bareNode, gateway } = stage
    const subjects: ReadonlyArray<Subject> = [{ ...bareNode, engineCpuUs: Effect.succeed(0) }, gateway]
    const round = (connections: number, forMs: number) =>
      Effect.forEach(subjects, (subject) => readCost(stage, subject, connections, forMs))
    yield* round(plan.connections, plan.warmUpMs)
    const rounds = yield* repeatRounds(plan, () =>
      Effect.all({ alone: round(1, plan.windowMs), loaded: round(plan.connections, plan.windowMs) }),
    )
    const of = (load: "alone" | "loaded", at: number, part: (reading: Reading) => number) =>
      rounds.map((readings) => {
        const reading = readings[load][at]
        return reading === undefined ? Number.NaN : part(reading)
      })
    const server = ({ serverMs }: Reading) => serverMs
    const ofACore = ({ serverMs }: Reading) => 1_000 / serverMs
    const rate = ({ perSecond }: Reading) => perSecond
    return {
      title: "Cost of a request: chat, not streamed, one token, fake engine, under load and one at a time",
      method:
        `${plan.connections} connections, or one, each of which sends its next request when the last one is answered; user and system ` +
        "time of the server process over the answers; bare node:http and gateway alternately; requests a second of a core " +
        "are the inverse of that time, because the load client and the engine share the cores",
      figures: [
        figure("bare node:http process", "ms/request", of("loaded", 0, server)),
        figure("gateway process", "ms/request", of("loaded", 1, server), atMost(0.25)),
        figure(
          "engine process",
          "ms/request",
          of("loaded", 1, ({ engineMs }) => engineMs),
        ),
        ...besideFloor(
          readingsOf("bare node:http, requests a second of a core", "1/s", of("loaded", 0, ofACore)),
          readingsOf("gateway, requests a second of a core", "1/s", of("loaded", 1, ofACore)),
          atLeast(0.1),
        ),
        figure("bare node:http, answers a second to this client", "1/s", of("loaded", 0, rate)),
        figure("gateway, answers a second to this client", "1/s", of("loaded", 1, rate)),
        figure("bare node:http process, one request at a time", "ms/request", of("alone", 0, server)),
        figure("gateway process, one request at a time", "ms/request", of("alone", 1, server), atMost(0.25)),
      ],
    }
  })
