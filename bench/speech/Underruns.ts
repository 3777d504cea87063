// Whether playback runs out of audio: players without a buffer, on an increasing number of concurrent streams, up to the
// number that is admitted.

import { Effect } from "effect"
import { atLeast, atMost, type Figure, figure, type Part } from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { type StreamFormat, scripted, scriptedFactor, spoken, textOf } from "./Models.ts"
import type { Heard } from "./playerMain.ts"
import { hearAll, type Stage } from "./Stage.ts"

export interface UnderrunPlan extends RoundsPlan {
  readonly streams: ReadonlyArray<number>
  readonly characters: number
  /** Duration of the scripted streams at the limit. */
  readonly seconds: number
}

const sum = (values: ReadonlyArray<number>): number => values.reduce((total, value) => total + value, 0)

const figuresOf = (title: string, rounds: ReadonlyArray<ReadonlyArray<Heard>>): ReadonlyArray<Figure> => {
  const each = (part: (played: ReadonlyArray<Heard>) => number) => rounds.map(part)
  return [
    figure(
      `${title}: under-runs`,
      "times",
      each((played) => sum(played.map(({ underruns }) => underruns))),
      atMost(0),
    ),
    figure(
      "  time a listener waited",
      "ms",
      each((played) => Math.max(...played.map(({ starvedMs }) => starvedMs))),
    ),
    figure(
      "  least ahead of the ear",
      "ms",
      each((played) => Math.min(...played.map(({ leastAheadMs }) => leastAheadMs))),
    ),
    figure(
      "  last to hear its first audio",
      "ms",
      each((played) => Math.max(...played.map(({ firstAudioMs }) => firstAudioMs))),
    ),
  ]
}

/** As many as admission accepts: 0.8 of the model's time. */
const limit = Math.floor(0.8 / scriptedFactor + 1e-9)

const atLimit = (stage: Stage, seconds: number) => {
  // Pieces of a second, each computed in a tenth of it, one after the other.
  const script = { pieces: seconds, samples: 24_000, pieceMs: 1_000 * scriptedFactor }
  const body = scripted(script, { stream: true, response_format: "pcm" })
  return hearAll(
    stage,
    "pcm",
    Array.from({ length: limit }, () => body),
  )
}

/** Statuses of the replies when one stream more than admitted is requested. */
const beyondLimit = ({ gateway, players }: Stage) =>
  Effect.gen(function* () {
    const script = { pieces: 3, samples: 24_000, pieceMs: 1_000 * scriptedFactor }
    const body = scripted(script, { stream: true, response_format: "pcm" })
    const ask = { target: gateway.target, format: "pcm" as StreamFormat, body }
    const played = yield* players.ask(
      "hear",
      Array.from({ length: limit + 1 }, () => ask),
    )
    return played.filter(({ status }) => status === 503).length
  })

export const underruns = (stage: Stage, plan: UnderrunPlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const text = textOf(plan.characters)
    const figures: Array<Figure> = []
    for (const streams of plan.streams) {
      const rounds = yield* repeatRounds(plan, () =>
        hearAll(
          stage,
          "pcm",
          Array.from({ length: streams }, () => spoken(text, "pcm")),
        ),
      )
      figures.push(...figuresOf(`demonstration weights, ${streams} pcm streams`, rounds))
    }
    const most = plan.streams.at(-1) ?? 1
    const opus = yield* repeatRounds(plan, () =>
      hearAll(
        stage,
        "opus",
        Array.from({ length: most }, () => spoken(text, "opus")),
      ),
    )
    figures.push(...figuresOf(`demonstration weights, ${most} opus streams`, opus))
    const full = yield* repeatRounds(plan, () => atLimit(stage, plan.seconds))
    figures.push(
      ...figuresOf(`scripted engine at its limit, ${limit} streams of RTF ${scriptedFactor}`, full),
      figure("  refused of one stream more", "503s", [yield* beyondLimit(stage)], atLeast(1)),
    )
    return {
      title: `Under-runs: streams that begin at the same moment, ${text.length} characters each`,
      method:
        "each listener plays from its first audio on, at 24 kHz and without a buffer; what arrives after the moment at " +
        "which all audio before it has been played is an under-run; all streams of a round counted together",
      figures,
    }
  })
