// CPU time of a streamed token, against raw uWS writing the same bytes at the same pace.
import { Effect } from "effect"
import {
  atMost,
  type Figure,
  figure,
  figureOf,
  type Goal,
  type Part,
  ratioTo,
  readingsOf,
} from "#harness/report/Figure.ts"
import type { Child, ChildFailed } from "../support/Child.ts"
import type { Target } from "../support/Connection.ts"
import type { ProbeCommands } from "../support/Probe.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { chatPath, manyTokens, scriptedChat } from "./Models.ts"
import { closeWindow, loopFigures, type Stage, teachFloors, watchingLoop } from "./Stage.ts"

export interface CpuPlan extends RoundsPlan {
  readonly streams: number
  /** Paces: milliseconds between two tokens of a stream. */
  readonly stepsMs: ReadonlyArray<number>
  readonly windowMs: number
}

interface Subject {
  readonly child: Child<ProbeCommands>
  readonly target: Target
  readonly model: string
  readonly engineCpuUs: Effect.Effect<number>
}

interface Reading {
  /** CPU time of the server process. */
  readonly serverUs: number
  /** CPU time of its engine processes. */
  readonly engineUs: number
  readonly tokensPerSecond: number
}

/** Milliseconds until the connections of the last window are closed. */
const settleMs = 150

const takeCpu = ({ child, engineCpuUs }: Subject) =>
  Effect.gen(function* () {
    const { atMs, cpuUs } = yield* child.ask("cpu")
    return { atMs, cpuUs, engineUs: yield* engineCpuUs }
  })

/** Microseconds of CPU time for each millisecond without streams. */
const idleRate = (subject: Subject, windowMs: number) =>
  Effect.gen(function* () {
    const before = yield* takeCpu(subject)
    yield* Effect.sleep(windowMs)
    const after = yield* takeCpu(subject)
    const elapsedMs = after.atMs - before.atMs
    return {
      server: (after.cpuUs - before.cpuUs) / elapsedMs,
      engine: (after.engineUs - before.engineUs) / elapsedMs,
    }
  })

const startStreams = ({ client }: Stage, subject: Subject, streams: number, stepMs: number) =>
  Effect.gen(function* () {
    const script = { tokens: manyTokens, tokenMs: stepMs }
    const body = scriptedChat(subject.model, true, script)
    const bodies = Array.from({ length: streams }, () => [body])
    yield* client.ask("start", { target: subject.target, path: chatPath, bodies })
    yield* client.ask("begun")
    yield* Effect.sleep(settleMs)
  })

const stopStreams = ({ client }: Stage) => Effect.andThen(client.ask("stop"), Effect.sleep(settleMs))

type IdleRate = Effect.Success<ReturnType<typeof idleRate>>

const read = (
  stage: Stage,
  subject: Subject,
  plan: CpuPlan,
  stepMs: number,
  idle: IdleRate,
): Effect.Effect<Reading, ChildFailed> =>
  Effect.gen(function* () {
    yield* startStreams(stage, subject, plan.streams, stepMs)
    yield* closeWindow(stage)
    const before = yield* takeCpu(subject)
    yield* Effect.sleep(plan.windowMs)
    const after = yield* takeCpu(subject)
    const { elapsedMs, events } = yield* closeWindow(stage)
    yield* stopStreams(stage)
    const cpuMs = after.atMs - before.atMs
    // The two windows differ by the time of a command; the token rate of both is the same.
    const tokens = (events / elapsedMs) * cpuMs
    return {
      serverUs: (after.cpuUs - before.cpuUs - idle.server * cpuMs) / tokens,
      engineUs: (after.engineUs - before.engineUs - idle.engine * cpuMs) / tokens,
      tokensPerSecond: (events / elapsedMs) * 1000,
    }
  })

const subjects = ({ gateway, raw }: Stage) => {
  const gatewaySubject = (isolation: "process" | "thread"): Subject => ({
    child: gateway.child,
    target: gateway.target,
    model: `fake-${isolation}`,
    engineCpuUs: gateway.engineCpuUs,
  })
  const floor: Subject = {
    child: raw.child,
    target: raw.target,
    model: "",
    engineCpuUs: Effect.succeed(0),
  }
  return [floor, gatewaySubject("process"), gatewaySubject("thread")] as const
}

const atPace = (
  stage: Stage,
  plan: CpuPlan,
  stepMs: number,
  idle: ReadonlyArray<IdleRate>,
): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    yield* teachFloors(stage, stepMs)
    const all = subjects(stage)
    const round = Effect.forEach(all, (subject, at) =>
      read(stage, subject, plan, stepMs, idle[at] ?? { server: 0, engine: 0 }),
    )
    // The first round warms up the code and is not counted.
    yield* round
    const rounds = yield* repeatRounds(plan, () => round)
    const [, isolated] = all
    yield* startStreams(stage, isolated, plan.streams, stepMs)
    const watched = yield* watchingLoop(stage, Effect.sleep(plan.windowMs))
    yield* stopStreams(stage)

    const of = (at: number, part: (reading: Reading) => number) =>
      rounds.map((readings) => {
        const reading = readings[at]
        return reading === undefined ? Number.NaN : part(reading)
      })
    const server = ({ serverUs }: Reading) => serverUs
    const together = ({ engineUs, serverUs }: Reading) => serverUs + engineUs
    const raw = readingsOf("raw uWS process", "us/token", of(0, server))
    const besideRaw = (name: string, values: ReadonlyArray<number>, goal?: Goal): ReadonlyArray<Figure> => {
      const subject = readingsOf(name, "us/token", values)
      return [figureOf(subject), ratioTo(subject, raw, goal)]
    }
    return {
      title: `CPU a token: ${plan.streams} streams, a token every ${stepMs} ms each, fake engine`,
      method:
        "user and system time of the server process over a window, idle time subtracted, divided by the tokens the " +
        "client received; raw uWS writes the gateway's own bytes from a timer; both alternately, ratios pair by pair",
      figures: [
        figure(
          "tokens a second",
          "1/s",
          of(1, ({ tokensPerSecond }) => tokensPerSecond),
        ),
        figureOf(raw),
        ...besideRaw("gateway process (engine in a process)", of(1, server), atMost(1.3)),
        ...besideRaw("gateway and engine process together", of(1, together)),
        ...besideRaw("gateway with engine thread, together", of(2, server)),
        ...loopFigures([watched]),
      ],
    }
  })

/** One section for each pace. */
export const cpuPerToken = (stage: Stage, plan: CpuPlan): Effect.Effect<ReadonlyArray<Part>, ChildFailed> =>
  Effect.gen(function* () {
    const idle = yield* Effect.forEach(subjects(stage), (subject) => idleRate(subject, plan.windowMs))
    return yield* Effect.forEach(plan.stepsMs, (stepMs) => atPace(stage, plan, stepMs, idle))
  })
