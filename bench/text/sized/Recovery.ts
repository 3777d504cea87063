// What a disturbance leaves behind: replies before it, while other processes come and go beside them for minutes, and right after
// it. The node chooses its threads itself, as most do, and so also by what it measured while it was disturbed. The bare loop, which remembers
// nothing, is measured beside the node before and after, because a machine's own speed changes too.
import { Effect, type Scope } from "effect"
import { atLeast, atMost, figureOf, ofEach, type Part, ratioTo, single } from "#harness/report/Figure.ts"
import { startNeighbours } from "../../run/Beside.ts"
import type { ChildFailed } from "../../support/Child.ts"
import { measuringMs } from "../../support/ModelLoads.ts"
import { replyRate, runToEnd, type SizedStage, startServed } from "./Stage.ts"

export interface RecoveryPlan {
  readonly streams: ReadonlyArray<number>
  readonly promptTokens: number
  readonly replyTokens: number
  readonly windowMs: number
  readonly rounds: number
  readonly disturbedMs: number
}

/** As many as two busy programs, each for five seconds in turn with five of rest. */
const neighbours = { processes: 2, nice: 0, pulseMs: 5_000 } as const

/** Milliseconds of quiet before the figures after the disturbance: the goal is that they are as before within ten seconds. */
const quietMs = 5_000

interface Reading {
  readonly streams: number
  readonly bare: number
  readonly node: number
  /** Of prompts that arrive together. */
  readonly firstLastMs: number
}

/** The node that is measured in place of the suite's, whose threads the catalog gives. */
const byDefault = (stage: SizedStage) =>
  Effect.gen(function* () {
    const { client, serials, weights } = stage
    const served = yield* startServed(client, serials, { weights })
    yield* Effect.sleep(measuringMs)
    return { ...stage, ...served }
  })

/** The same number of rounds of each number of streams, in turn. */
const readings = (stage: SizedStage, plan: RecoveryPlan) =>
  Effect.gen(function* () {
    const found: Array<Reading> = []
    for (let round = 0; round < plan.rounds; round++) {
      for (const streams of plan.streams) {
        const prompts = stage.serials.prompts(streams, 8)
        // The node first: what it has learnt is nearest to the disturbance then.
        const node = yield* replyRate(stage, prompts, plan.windowMs)
        const { firstEventMs } = yield* runToEnd(stage, stage.serials.prompts(streams, plan.promptTokens), 8)
        const bare = yield* stage.bare.ask("replies", { prompts, windowMs: plan.windowMs })
        found.push({ streams, bare, node, firstLastMs: Math.max(...firstEventMs) })
      }
    }
    return found
  })

/** Requests of changing numbers of streams until the time is over; returns the latest first token. */
const disturbed = (stage: SizedStage, plan: RecoveryPlan) =>
  Effect.scoped(
    Effect.gen(function* () {
      yield* startNeighbours(neighbours)
      const endsMs = performance.now() + plan.disturbedMs
      let latestMs = 0
      let replies = 0
      while (performance.now() < endsMs) {
        for (const streams of plan.streams) {
          const prompts = stage.serials.prompts(streams, plan.promptTokens)
          const { firstEventMs } = yield* runToEnd(stage, prompts, plan.replyTokens)
          latestMs = Math.max(latestMs, ...firstEventMs)
          replies += streams
        }
      }
      return { latestMs, replies }
    }),
  )

const figuresOf = (streams: number, before: ReadonlyArray<Reading>, after: ReadonlyArray<Reading>) => {
  const name = streams === 1 ? "1 stream" : `${streams} streams`
  const ofThis = (all: ReadonlyArray<Reading>) => all.filter((reading) => reading.streams === streams)
  const rate = (when: string, all: ReadonlyArray<Reading>) =>
    ofEach(ofThis(all), `${name}, ${when}`, "of the bare loop's tokens", ({ bare, node }) => node / bare)
  const first = (when: string, all: ReadonlyArray<Reading>) =>
    ofEach(ofThis(all), `${name}, last first token, ${when}`, "ms", ({ firstLastMs }) => firstLastMs)
  const [rateBefore, rateAfter] = [rate("before", before), rate("after", after)]
  const [firstBefore, firstAfter] = [first("before", before), first("after", after)]
  return [
    figureOf(rateBefore),
    figureOf(rateAfter),
    ratioTo(rateAfter, rateBefore, atLeast(0.9)),
    figureOf(firstBefore),
    figureOf(firstAfter),
    ratioTo(firstAfter, firstBefore, atMost(1.2)),
  ]
}

export const recovery = (
  suite: SizedStage,
  plan: RecoveryPlan,
): Effect.Effect<Part, ChildFailed, Scope.Scope> =>
  Effect.gen(function* () {
    const stage = yield* byDefault(suite)
    const before = yield* readings(stage, plan)
    const { latestMs, replies } = yield* disturbed(stage, plan)
    yield* Effect.sleep(quietMs)
    const after = yield* readings(stage, plan)
    return {
      title: `After ${plan.disturbedMs / 1_000} disturbed seconds`,
      method:
        `a node that chooses its threads; ${plan.rounds} rounds before and after ${neighbours.processes} processes that compute for ` +
        `${neighbours.pulseMs / 1_000} s in turn with as long a rest, while replies of ${plan.replyTokens} tokens to prompts of ` +
        `${plan.promptTokens} run; the first round begins ${quietMs / 1_000} s after their end; tokens of ${plan.windowMs} ms once ` +
        "each reply has begun, over those of the bare loop",
      figures: [
        ...plan.streams.flatMap((streams) => figuresOf(streams, before, after)),
        single("disturbed: replies", "", replies, "more"),
        single("disturbed: latest first token", "ms", latestMs, "less"),
      ],
    }
  })
