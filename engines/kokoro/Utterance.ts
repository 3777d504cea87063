// One speech request from its first phoneme to its last sample; the verb of both speech adapters. Pieces are cut
// while earlier ones sound, wait for their turn, are synthesised and leave through the outlet.
import { Clock, Effect } from "effect"
import {
  EngineError,
  type Outlet,
  type PcmChunk,
  type SynthesizeEnd,
  type SynthesizeRequest,
  type SynthesizeStarted,
} from "../Engine.ts"
import type { KokoroGraph } from "./KokoroGraph.ts"
import { pauseSamples, toPcm } from "./Pcm.ts"
import { type Piece, PieceReader } from "./Pieces.ts"
import type { Symbols } from "./Symbols.ts"
import type { Turns } from "./Turns.ts"
import type { VoiceStyle } from "./VoiceStyles.ts"

export interface Speaker {
  readonly graph: Pick<KokoroGraph, "synthesize" | "wholeSpeed">
  readonly symbols: Symbols
  readonly turns: Turns
  readonly rateHz: number
  readonly maxSymbols: number
}

export interface Utterance {
  /** Phoneme fragments of the text, lazily. */
  readonly fragments: AsyncIterable<string>
  /** The voice; asked for after `started`, because a cloned voice costs a native call. */
  readonly style: Effect.Effect<VoiceStyle, EngineError>
  readonly speed: number
  readonly priority: "stream" | "batch"
}

/**
 * Nobody listens to a batch reply while it is made, so its pieces are due this long after they are asked for:
 * behind every stream that would run dry sooner, ahead of one that is further ahead than that. A guess.
 */
export const BATCH_PATIENCE_MS = 10_000

export const invalidInput = (field: string, detail: string): EngineError =>
  new EngineError({ reason: "InvalidInput", field, detail })

/** Speed as the specification allows it, and as the graph can take it. */
export const checkedSpeed = (
  speed: number,
  graph: Pick<KokoroGraph, "wholeSpeed">,
): Effect.Effect<number, EngineError> => {
  if (!(speed >= 0.25 && speed <= 4)) return Effect.fail(invalidInput("speed", "must be from 0.25 to 4"))
  if (graph.wholeSpeed && !Number.isInteger(speed)) {
    return Effect.fail(invalidInput("speed", "must be a whole number with this model"))
  }
  return Effect.succeed(speed)
}

export const speak = (
  speaker: Speaker,
  utterance: Utterance,
  out: Outlet<SynthesizeStarted, PcmChunk>,
): Effect.Effect<Required<SynthesizeEnd>, EngineError> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock
    const arrivedAtMs = clock.currentTimeMillisUnsafe()
    const reader = new PieceReader(utterance.fragments, speaker.symbols, speaker)

    let samples = 0
    let heardFromMs: number | undefined
    const dueAtMs = (): number => {
      if (utterance.priority === "batch") return clock.currentTimeMillisUnsafe() + BATCH_PATIENCE_MS
      return heardFromMs === undefined ? arrivedAtMs : heardFromMs + (samples * 1000) / speaker.rateHz
    }
    // Phonemes take a turn as well: the piece after next must not hold up somebody's first.
    const inTurn = <A>(work: Effect.Effect<A, EngineError>): Effect.Effect<A, EngineError> =>
      Effect.suspend(() => speaker.turns.take(dueAtMs(), timed(work)))
    let computeNs = 0n
    const timed = <A>(work: Effect.Effect<A, EngineError>): Effect.Effect<A, EngineError> =>
      Effect.suspend(() => {
        const beganNs = clock.monotonicTimeNanosUnsafe()
        const stop = Effect.sync(() => {
          computeNs += clock.monotonicTimeNanosUnsafe() - beganNs
        })
        return Effect.ensuring(work, stop)
      })
    const push = (chunk: Int16Array): void => {
      if (chunk.length === 0) return
      heardFromMs ??= clock.currentTimeMillisUnsafe()
      samples += chunk.length
      out.push({ samples: chunk })
    }

    let piece: Piece | undefined = yield* inTurn(reader.next)
    if (piece === undefined) return yield* invalidInput("input", "has nothing that can be pronounced")
    out.started({ pieces: 1 })
    const style = yield* inTurn(utterance.style)
    while (piece !== undefined) {
      if (out.paused()) yield* out.resumed
      const { phonemes, pause }: Piece = piece
      const ids = speaker.symbols.ids(phonemes)
      const pcm = yield* inTurn(
        Effect.map(speaker.graph.synthesize(ids, style.row(ids.length - 2), utterance.speed), (wave) =>
          toPcm(wave, speaker.rateHz),
        ),
      )
      if (pcm === undefined) {
        return yield* new EngineError({ reason: "Failed", field: "", detail: "the model returned NaN" })
      }
      push(pcm)
      piece = yield* inTurn(reader.next)
      // Sent before the next piece exists: silence that is already there is time to make it in.
      if (piece !== undefined) push(new Int16Array(pauseSamples(pause, utterance.speed, speaker.rateHz)))
    }
    return { samples, computeMs: Number(computeNs) / 1e6 }
  })

/** A request's place among the others. */
export const priorityOf = (request: SynthesizeRequest): "stream" | "batch" => request.priority ?? "stream"
