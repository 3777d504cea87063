// Time to first audio and to the first audible sound of a stream, against the first piece of the bare
// engine; and whether it depends on the length of the text.
import { Effect } from "effect"
import { median } from "#harness/figures/Statistics.ts"
import {
  atMost,
  besideFloor,
  beyond,
  figure,
  figureOf,
  type Part,
  ratioTo,
  readingsOf,
  times,
} from "#harness/report/Figure.ts"
import type { ChildFailed } from "../support/Child.ts"
import { type RoundsPlan, repeatRounds } from "../support/Rounds.ts"
import { type StreamFormat, sentence, spoken, textOf } from "./Models.ts"
import type { Stage } from "./Stage.ts"

export interface FirstAudioPlan extends RoundsPlan {
  /** Requests of one kind in a round, one after the other; the round's reading is their median. */
  readonly requests: number
}

/** The goal: at most this times the bare engine's first piece, plus a few milliseconds by format. */
const allowedRatio = 1.15
const longText = textOf(4_000)

interface Round {
  readonly bareMs: number
  readonly pcmMs: number
  readonly pcmSoundMs: number
  readonly opusMs: number
  readonly opusSoundMs: number
  readonly shortBeginningMs: number
  readonly longBeginningMs: number
  /** Of the long text, without `stream`. */
  readonly batchBeginningMs: number
}

const takeRound = ({ bare, gateway, players }: Stage, count: number): Effect.Effect<Round, ChildFailed> =>
  Effect.gen(function* () {
    const hear = (text: string, format: StreamFormat, times: number) =>
      players.ask("hearInTurn", {
        ask: { target: gateway.target, format, body: spoken(text, format) },
        count: times,
      })
    const pieces = yield* bare.ask("inTurn", { text: sentence, count })
    const pcm = yield* hear(sentence, "pcm", count)
    const opus = yield* hear(sentence, "opus", count)
    const beginning = (text: string, stream: boolean) => ({
      target: gateway.target,
      format: "pcm" as const,
      body: { ...spoken(text, "pcm"), stream },
    })
    const beginnings = yield* players.ask("beginnings", {
      asks: [beginning(sentence, true), beginning(longText, true), beginning(longText, false)],
      count,
    })
    const medianOf = (index: number) => median(beginnings.map((row) => row[index] ?? Number.NaN))
    return {
      bareMs: median(pieces.map(({ firstPieceMs }) => firstPieceMs)),
      pcmMs: median(pcm.map(({ firstAudioMs }) => firstAudioMs)),
      pcmSoundMs: median(pcm.map(({ firstSoundMs }) => firstSoundMs)),
      opusMs: median(opus.map(({ firstAudioMs }) => firstAudioMs)),
      opusSoundMs: median(opus.map(({ firstSoundMs }) => firstSoundMs)),
      shortBeginningMs: medianOf(0),
      longBeginningMs: medianOf(1),
      batchBeginningMs: medianOf(2),
    }
  })

export const firstAudio = (stage: Stage, plan: FirstAudioPlan): Effect.Effect<Part, ChildFailed> =>
  Effect.gen(function* () {
    const rounds = yield* repeatRounds(plan, () => takeRound(stage, plan.requests))
    const of = (part: keyof Round) => rounds.map((round) => round[part])
    const ms = (name: string, part: keyof Round) => readingsOf(name, "ms", of(part))
    const bare = ms("bare engine, first piece", "bareMs")
    const [pcm, opus] = [ms("pcm, first audio", "pcmMs"), ms("opus, first audio", "opusMs")]
    const short = ms(`first audio of ${sentence.length} characters, interleaved`, "shortBeginningMs")
    const long = ms(`first audio of ${longText.length} characters, interleaved`, "longBeginningMs")
    const batch = ms(`the same ${longText.length} characters without stream`, "batchBeginningMs")
    return {
      title: "First audio: demonstration weights, one stream on an idle node",
      method:
        `from the request handed to the kernel to the first samples (pcm) or the first audio page (opus) in the ` +
        `listener's process; the bare engine runs the same text in a process without HTTP; alternately, a reading is the ` +
        `median of ${plan.requests}; "sound" is the first sample above -40 dBFS; the last five lines are listeners who leave with the first audio: ` +
        `a short text, a long text, and the long text without stream, interleaved`,
      figures: [
        ...besideFloor(bare, pcm),
        beyond(pcm, times(allowedRatio, bare), atMost(5)),
        figure("pcm, first sound", "ms", of("pcmSoundMs")),
        figureOf(opus),
        beyond(opus, times(allowedRatio, bare), atMost(30)),
        figure("opus, first sound", "ms", of("opusSoundMs")),
        ...besideFloor(short, long, atMost(1.2)),
        figureOf(batch),
        ratioTo(batch, long, atMost(1.2)),
      ],
    }
  })
