// Tokens a second through HTTP against the loops without a gateway, on the same weights and threads; and from the
// same runs the time to first token, the evenness of the other tokens, and the delay of the gateway's event loop.
import { Effect } from "effect"
import { percentile } from "#harness/figures/Statistics.ts"
import {
  atLeast,
  besideFloor,
  figure,
  figureOf,
  type Part,
  ratioTo,
  readingsOf,
} from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import type { Window } from "../support/loadClientMain.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { type DecodeRate, seedOf } from "./bareLoop.ts"
import { completionsPath, demoWeights, story, storyCompletion } from "./Models.ts"
import { loopFigures, type Stage, type Watched, watchingLoop, whole } from "./Stage.ts"

export interface DecodePlan extends RoundsPlan {
  readonly loads: ReadonlyArray<{
    readonly streams: number
    /** Tokens of one stream. */
    readonly tokens: number
  }>
}

interface Round {
  readonly bare: number
  readonly engine: number
  readonly gateway: number
  readonly window: Window
  readonly watched: Watched<unknown>
}

/** The weights' default, and as much as two shared cores leave. */
const threads = 1

/** Requests prepared for a stream: more than it needs, because replies of this model have about 60 tokens. */
const repliesReady = 64

const perSecond = ({ completionTokens, elapsedMs }: Window): number => (completionTokens / elapsedMs) * 1000

/** The best of the runs: the first one after loading is slower. */
const best = (rates: ReadonlyArray<DecodeRate>): number =>
  Math.max(...rates.map(({ tokensPerSecond }) => tokensPerSecond))

const runStreams = (
  { client, gateway }: Stage,
  streams: number,
  tokens: number,
): Effect.Effect<Window, ChildFailed> =>
  Effect.gen(function* () {
    const bodies = Array.from({ length: streams }, (_, stream) =>
      Array.from({ length: repliesReady }, (_, reply) => storyCompletion(seedOf(stream, reply))),
    )
    yield* client.ask("start", { target: gateway.target, path: completionsPath, bodies, tokens })
    const window = yield* whole(client.ask("ended"))
    yield* client.ask("stop")
    return window
  })

const takeRound = (stage: Stage, streams: number, tokens: number): Effect.Effect<Round, ChildFailed> =>
  Effect.gen(function* () {
    const load = { weights: demoWeights, streams, threads, tokens, prompt: story }
    const bare = best(yield* stage.loops.ask("bare", { load, repeats: 2 }))
    const first = yield* runStreams(stage, streams, tokens)
    const watched = yield* watchingLoop(stage, runStreams(stage, streams, tokens))
    const engine = best(yield* stage.loops.ask("engine", { load, repeats: 2 }))
    const gateway = Math.max(perSecond(first), perSecond(watched.value))
    return { bare, engine, gateway, window: watched.value, watched }
  })

const partOf = ({ streams, tokens }: DecodePlan["loads"][number], rounds: ReadonlyArray<Round>): Part => {
  const of = (part: (round: Round) => number) => rounds.map(part)
  const gap = (which: "p50" | "p95" | "p99") => of(({ window }) => window.gaps[which])
  const first = (share: number) => of(({ window }) => percentile(window.firstEventMs, share))
  const rate = (what: string, part: "bare" | "engine" | "gateway") =>
    readingsOf(
      what,
      "tokens/s",
      of((round) => round[part]),
    )
  const bare = rate("node-llama-cpp's own loop", "bare")
  const engine = rate("edgewise's engine alone", "engine")
  const gateway = rate("through HTTP streaming", "gateway")
  return {
    title: `Decoding: demonstration weights, ${threads} thread, ${streams === 1 ? "1 stream" : `${streams} streams`} of ${tokens} tokens`,
    method:
      "each stream asks for reply after reply until it has its tokens, prompts and requests included; the loops do " +
      "the same in a process without HTTP; alternately, the best of two each time",
    figures: [
      figureOf(engine),
      ...besideFloor(bare, gateway, atLeast(0.95)),
      ratioTo(gateway, engine),
      figure("  first token p50", "ms", first(0.5)),
      figure("  first token p95", "ms", first(0.95)),
      figure("  first token p99", "ms", first(0.99)),
      figure("  gap between tokens p50", "ms", gap("p50")),
      figure("  gap between tokens p95", "ms", gap("p95")),
      figure("  gap between tokens p99", "ms", gap("p99")),
      ...loopFigures(rounds.map(({ watched }) => watched)),
    ],
  }
}

/** One part for each load. */
export const decodeRate = (stage: Stage, plan: DecodePlan): Effect.Effect<ReadonlyArray<Part>, ChildFailed> =>
  Effect.forEach(plan.loads, (load) =>
    Effect.map(
      repeatRounds(plan, () => takeRound(stage, load.streams, load.tokens)),
      (rounds) => partOf(load, rounds),
    ),
  )
