// One speech request from its first phoneme to its last sample; shared by the speech adapters with this graph. Pieces
// are cut while earlier ones play, queue by deadline, are synthesised and pushed to the outlet.
import * as Effect from "effect/Effect"
import type { DeadlineQueue } from "#domain/queues/DeadlineQueue.ts"
import {
  callFailed,
  type EngineError,
  invalidInput,
  type Outlet,
  type SynthesizeEnd,
  type SynthesizeRequest,
} from "../../protocol/Engine.ts"
import { pauseSamples, trimmedPcm } from "./Pcm.ts"
import { type Piece, PieceReader } from "./Pieces.ts"
import { Playout } from "./Playout.ts"
import type { KokoroGraph } from "./SpeechGraph.ts"
import type { Symbols } from "./Symbols.ts"
import type { VoiceStyle } from "./VoiceStyles.ts"
import { spokenWords } from "./WordDurations.ts"
import type { Fragment } from "./WordSymbols.ts"

export interface Speaker {
  readonly graph: Pick<KokoroGraph, "synthesize" | "wholeSpeed">
  readonly symbols: Symbols
  readonly calls: DeadlineQueue
  readonly rateHz: number
  readonly maxSymbols: number
}

interface Utterance {
  /** Phonemes of the text, clause by clause, computed lazily. */
  readonly fragments: AsyncIterable<Fragment>
  /** The voice; evaluated after `started`, because a cloned voice costs a native call. */
  readonly style: Effect.Effect<VoiceStyle, EngineError>
  readonly speed: number
  readonly priority: "stream" | "batch"
}

/** Checks the speed: 0.25 to 4 (protocol 8.1), and an integer if the graph needs one. */
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
  out: Outlet<"speech">,
): Effect.Effect<Required<SynthesizeEnd>, EngineError> =>
  Effect.gen(function* () {
    const playout = yield* Playout.make({ ...speaker, priority: utterance.priority }, out)
    const reader = new PieceReader(utterance.fragments, speaker.symbols, speaker)
    // Phonemisation queues too: it must not delay the first piece of another request.
    let piece: Piece | undefined = yield* playout.whenDue(reader.next)
    if (piece === undefined) return yield* invalidInput("input", "has nothing that can be pronounced")
    out.started({ pieces: 1 })
    const style = yield* playout.whenDue(utterance.style)
    while (piece !== undefined) {
      yield* playout.wanted
      const { pause, phonemes, words }: Piece = piece
      const ids = speaker.symbols.ids(phonemes)
      const pcm = yield* playout.whenDue(
        Effect.map(
          speaker.graph.synthesize(ids, style.row(ids.length - 2), utterance.speed),
          ({ durations, wave }) => {
            const trimmed = trimmedPcm(wave, speaker.rateHz, utterance.speed)
            if (trimmed === undefined) return undefined
            const { from, samples } = trimmed
            const made = {
              waveSamples: wave.length,
              from,
              samples: samples.length,
              startsAt: playout.samples,
            }
            return { samples, words: spokenWords(words, ids.length, durations, made) }
          },
        ),
      )
      if (pcm === undefined) {
        return yield* callFailed("the model returned NaN")
      }
      yield* playout.give(pcm.samples, pcm.words)
      piece = yield* playout.whenDue(reader.next)
      // Sent before the next piece is computed, to gain the time that the pause plays.
      if (piece !== undefined)
        playout.push(new Int16Array(pauseSamples(pause, utterance.speed, speaker.rateHz)))
    }
    return playout.end
  })

/** The priority of a request; default "stream". */
export const priorityOf = (request: SynthesizeRequest): "stream" | "batch" => request.priority ?? "stream"
