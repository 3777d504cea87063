// The processes of the text suite, started once: a node, the raw server, the load client and the decode loops.
import { Effect, type Scope } from "effect"
import { atMost, type Figure, figureOf, ofEach } from "#harness/report/Figure.ts"
import { type Child, ChildFailed, startChild } from "../support/Child.ts"
import type { Target } from "../support/Connection.ts"
import { type Gateway, startGateway } from "../support/Gateway.ts"
import { type LoadClient, startLoadClient } from "../support/LoadClient.ts"
import type { OnceReply, Window } from "../support/loadClientMain.ts"
import type { LoopDelay } from "../support/Probe.ts"
import type { BareNodeCommands } from "./bareNodeMain.ts"
import type { LoopsCommands } from "./loopsMain.ts"
import { chatPath, models, scriptedChat } from "./Models.ts"
import type { RawServerCommands } from "./rawServerMain.ts"

export interface Stage {
  readonly gateway: Gateway
  readonly raw: { readonly child: Child<RawServerCommands>; readonly target: Target }
  readonly bareNode: { readonly child: Child<BareNodeCommands>; readonly target: Target }
  readonly client: LoadClient
  readonly loops: Child<LoopsCommands>
}

/** Fails as soon as one of its processes has ended. */
export const stageDied = ({
  bareNode,
  client,
  gateway,
  loops,
  raw,
}: Stage): Effect.Effect<never, ChildFailed> =>
  Effect.raceAllFirst([bareNode.child.died, client.died, gateway.child.died, loops.died, raw.child.died])

export const startStage = (profileDir?: string): Effect.Effect<Stage, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const gateway = yield* startGateway({ models, profileDir })
    const raw = yield* startChild<RawServerCommands>({
      name: "raw server",
      entry: new URL("./rawServerMain.ts", import.meta.url),
    })
    const bareNode = yield* startChild<BareNodeCommands>({
      name: "bare node:http server",
      entry: new URL("./bareNodeMain.ts", import.meta.url),
    })
    const client = yield* startLoadClient
    const loops = yield* startChild<LoopsCommands>({
      name: "decode loops",
      entry: new URL("./loopsMain.ts", import.meta.url),
    })
    const stage: Stage = {
      gateway,
      raw: { child: raw, target: { port: yield* raw.ask("port"), key: "" } },
      bareNode: { child: bareNode, target: { port: yield* bareNode.ask("port"), key: "" } },
      client,
      loops,
    }
    yield* Effect.forEach(models, ({ id }) => firstReply(stage, id))
    return stage
  })

/** One request to the gateway, answered with 200. */
export const askGateway = (
  { client, gateway }: Stage,
  path: string,
  body: object,
): Effect.Effect<OnceReply, ChildFailed> =>
  answered(client.ask("once", { target: gateway.target, path, body }))

export const answered = (
  reply: Effect.Effect<OnceReply, ChildFailed>,
): Effect.Effect<OnceReply, ChildFailed> =>
  Effect.filterOrFail(
    reply,
    ({ status }) => status === 200,
    ({ body, status }) => new ChildFailed({ child: "edgewise serve", detail: `${status} ${body}` }),
  )

/** Fails unless every answer of the window succeeded. */
export const whole = (window: Effect.Effect<Window, ChildFailed>): Effect.Effect<Window, ChildFailed> =>
  Effect.filterOrFail(
    window,
    ({ failure }) => failure === undefined,
    ({ failure }) => new ChildFailed({ child: "load client", detail: `was answered ${failure}` }),
  )

/** Returns what the streams did since the window before, and opens the next one. */
export const closeWindow = ({ client }: Stage): Effect.Effect<Window, ChildFailed> =>
  whole(client.ask("window"))

export interface Watched<A> {
  readonly value: A
  readonly gateway: LoopDelay
  /** Delay of the raw server, which is idle meanwhile: the delay that the machine alone causes. */
  readonly idle: LoopDelay
}

const unwatched: LoopDelay = {
  p99: Number.NaN,
  longest: Number.NaN,
  longestWork: Number.NaN,
  longestCollected: Number.NaN,
}

/** Runs `effect` while the delays of the gateway's event loop and of an idle process are measured. */
export const watchingLoop = <A>(
  { gateway, raw }: Stage,
  effect: Effect.Effect<A, ChildFailed>,
): Effect.Effect<Watched<A>, ChildFailed> =>
  Effect.gen(function* () {
    yield* gateway.child.ask("watchLoop")
    yield* raw.child.ask("watchLoop")
    const value = yield* effect
    return {
      value,
      gateway: (yield* gateway.child.ask("loopDelay")) ?? unwatched,
      idle: (yield* raw.child.ask("loopDelay")) ?? unwatched,
    }
  })

/** The project's limit in milliseconds: nothing may block the gateway's event loop for longer. */
const loopRuleMs = 10

export const loopFigures = (watched: ReadonlyArray<Watched<unknown>>): ReadonlyArray<Figure> => [
  figureOf(ofEach(watched, "gateway's event loop late, p99", "ms", ({ gateway }) => gateway.p99)),
  figureOf(ofEach(watched, "  longest", "ms", ({ gateway }) => gateway.longest)),
  figureOf(ofEach(watched, "  longest of an idle process beside it", "ms", ({ idle }) => idle.longest)),
  figureOf(
    ofEach(watched, "  longest by its own work (CPU)", "ms", ({ gateway }) => gateway.longestWork),
    atMost(loopRuleMs),
  ),
]

/** Waits for a model's first answer: then it is loaded. */
const firstReply = (stage: Stage, model: string): Effect.Effect<unknown, ChildFailed> =>
  askGateway(stage, chatPath, { ...scriptedChat(model, false, { tokens: 1 }), max_tokens: 1 })

/** Gives the floors the bytes of the gateway's answers: single replies for both, streams for the raw server. */
export const teachFloors = (stage: Stage, stepMs: number): Effect.Effect<void, ChildFailed> =>
  Effect.gen(function* () {
    const ask = (stream: boolean) =>
      askGateway(stage, chatPath, scriptedChat("fake-process", stream, { tokens: stream ? 3 : 1 }))
    const [firstEvent = "", nextEvent = ""] = (yield* ask(true)).body.split(/(?<=\n\n)/)
    const body = (yield* ask(false)).body
    const reply: unknown = JSON.parse(body)
    yield* stage.bareNode.child.ask("imitate", body)
    yield* stage.raw.child.ask("imitate", { firstEvent, nextEvent, reply, stepMs })
  })
