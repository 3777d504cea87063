// The processes of the sized sections: a node with the generated weights, the floor on the same weights and threads, and
// the load client.
import { Effect, type Scope } from "effect"
import { type Child, ChildFailed, startChild } from "../../support/Child.ts"
import type { Target } from "../../support/Connection.ts"
import { type Gateway, type GatewayOptions, startGateway } from "../../support/Gateway.ts"
import { type LoadClient, startLoadClient } from "../../support/LoadClient.ts"
import type { Window } from "../../support/loadClientMain.ts"
import { completionsPath } from "../Models.ts"
import { whole } from "../Stage.ts"
import type { BareCommands } from "./bareMain.ts"
import { type Gpu, Serials, sizedCompletion, sizedEntry, unendingTokens } from "./Models.ts"

/** A node, and the client that sends requests to it. */
export interface Served {
  readonly client: LoadClient
  readonly target: Target
}

export interface SizedStage extends Served {
  readonly weights: string
  readonly threads: number
  readonly gateway: Gateway
  readonly bare: Child<BareCommands>
  readonly serials: Serials
}

interface SizedStageOptions {
  readonly weights: string
  readonly threads: number
  readonly profileDir: string | undefined
  /** Absent: on the CPU. */
  readonly gpu?: Gpu
  readonly settings?: GatewayOptions["settings"]
}

/** Fails as soon as one of the processes has ended. */
export const stageDied = ({ bare, client, gateway }: SizedStage): Effect.Effect<never, ChildFailed> =>
  Effect.raceAllFirst([client.died, gateway.child.died, bare.died])

interface PromptTime {
  readonly tokens: number
  readonly firstTokenMs: number
}

const usedTokens = (body: string): number => Number(/"prompt_tokens":(\d+)/.exec(body)?.[1])

/** One prompt with a reply of one token. */
export const promptOnce = (
  { client, target }: Served,
  prompt: string,
): Effect.Effect<PromptTime, ChildFailed> =>
  client.ask("once", { target, path: completionsPath, body: sizedCompletion(prompt, 1) }).pipe(
    Effect.filterOrFail(
      ({ status }) => status === 200,
      ({ body, status }) => new ChildFailed({ child: "edgewise serve", detail: `${status} ${body}` }),
    ),
    Effect.map(({ body, firstEventMs }) => ({ tokens: usedTokens(body), firstTokenMs: firstEventMs })),
  )

/** One stream for each prompt, all at once; every reply has `tokens` tokens. */
export const runToEnd = (
  { client, target }: Served,
  prompts: ReadonlyArray<string>,
  tokens: number,
): Effect.Effect<Window, ChildFailed> =>
  Effect.gen(function* () {
    const bodies = prompts.map((prompt) => [sizedCompletion(prompt, tokens)])
    yield* client.ask("start", { target, path: completionsPath, bodies, tokens })
    const window = yield* whole(client.ask("ended"))
    yield* client.ask("stop")
    return window
  })

/** Milliseconds in which the engine processes the cancels of streams. A guess. */
const cancelMs = 150

/** Runs `effect` while a reply to each prompt is running; none ends meanwhile. */
export const besideReplies = <A>(
  { client, target }: Served,
  prompts: ReadonlyArray<string>,
  effect: Effect.Effect<A, ChildFailed>,
): Effect.Effect<A, ChildFailed> =>
  Effect.gen(function* () {
    const bodies = prompts.map((prompt) => [sizedCompletion(prompt, unendingTokens)])
    yield* client.ask("start", { target, path: completionsPath, bodies })
    yield* client.ask("begun")
    yield* closeWindow({ client, target })
    const value = yield* effect
    yield* client.ask("stop")
    yield* Effect.sleep(cancelMs)
    return value
  })

/** What the streams did since the window before. */
export const closeWindow = ({ client }: Served): Effect.Effect<Window, ChildFailed> =>
  whole(client.ask("window"))

/** Tokens a second of all replies together, for `windowMs` from the moment when each has its first token. */
export const replyRate = (
  served: Served,
  prompts: ReadonlyArray<string>,
  windowMs: number,
): Effect.Effect<number, ChildFailed> =>
  besideReplies(
    served,
    prompts,
    Effect.gen(function* () {
      yield* Effect.sleep(windowMs)
      const { elapsedMs, events } = yield* closeWindow(served)
      return (events / elapsedMs) * 1000
    }),
  )

/** Prompts and replies that warm up code, caches and the engine's estimates. */
const warmUp = (served: Served, serials: Serials): Effect.Effect<void, ChildFailed> =>
  Effect.gen(function* () {
    for (const tokens of [8, 200, 200]) yield* promptOnce(served, serials.prompts(1, tokens)[0] ?? "")
    yield* runToEnd(served, serials.prompts(4, 8), 8)
  })

/** A warm node with only these weights. Without `threads` it chooses them itself. */
export const startServed = (
  client: LoadClient,
  serials: Serials,
  { gpu, profileDir, settings, threads, weights }: Partial<SizedStageOptions> & { readonly weights: string },
): Effect.Effect<Served & { readonly gateway: Gateway }, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const gateway = yield* startGateway({
      models: [sizedEntry(weights, threads, gpu)],
      profileDir,
      ...(settings === undefined ? {} : { settings }),
    })
    const served = { client, target: gateway.target, gateway }
    yield* warmUp(served, serials)
    return served
  })

export const startSizedStage = (
  options: SizedStageOptions,
): Effect.Effect<SizedStage, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const { gpu = "off", threads, weights } = options
    const serials = new Serials()
    const client = yield* startLoadClient
    const served = yield* startServed(client, serials, options)
    const bare = yield* startChild<BareCommands>({
      name: "bare loop",
      entry: new URL("./bareMain.ts", import.meta.url),
    })
    yield* bare.ask("open", { weights, threads, gpu })
    yield* bare.ask("firstTokens", { prompts: serials.prompts(4, 100), tokens: 8 })
    return { ...served, weights, threads, bare, serials }
  })
