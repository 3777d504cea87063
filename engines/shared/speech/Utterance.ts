// One speech request from its first phoneme to its last sample; the verb of both speech adapters. Pieces are cut
// while earlier ones sound, wait for their turn, are synthesised and leave through the outlet.
import * as Effect from "effect/Effect"
import type { DeadlineQueue } from "#domain/queues/DeadlineQueue.ts"
import {
  EngineError,
  type Outlet,
  type SynthesizeEnd,
  type SynthesizeRequest,
} from "../../protocol/Engine.ts"
import { pauseSamples, toPcm } from "./Pcm.ts"
import { type Piece, PieceReader } from "./Pieces.ts"
import { Playout } from "./Playout.ts"
import type { KokoroGraph } from "./SpeechGraph.ts"
import type { Symbols } from "./Symbols.ts"
import type { VoiceStyle } from "./VoiceStyles.ts"

export interface Speaker {
  readonly graph: Pick<KokoroGraph, "synthesize" | "wholeSpeed">
  readonly symbols: Symbols
  readonly calls: DeadlineQueue
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
  out: Outlet<"speech">,
): Effect.Effect<Required<SynthesizeEnd>, EngineError> =>
  Effect.gen(function* () {
    const playout = yield* Playout.make({ ...speaker, priority: utterance.priority }, out)
    const reader = new PieceReader(utterance.fragments, speaker.symbols, speaker)
    // Phonemes take a turn as well: the piece after next must not hold up somebody's first.
    let piece: Piece | undefined = yield* playout.inTurn(reader.next)
    if (piece === undefined) return yield* invalidInput("input", "has nothing that can be pronounced")
    out.started({ pieces: 1 })
    const style = yield* playout.inTurn(utterance.style)
    while (piece !== undefined) {
      yield* playout.wanted
      const { phonemes, pause }: Piece = piece
      const ids = speaker.symbols.ids(phonemes)
      const pcm = yield* playout.inTurn(
        Effect.map(speaker.graph.synthesize(ids, style.row(ids.length - 2), utterance.speed), (wave) =>
          toPcm(wave, speaker.rateHz, utterance.speed),
        ),
      )
      if (pcm === undefined) {
        return yield* new EngineError({ reason: "Failed", field: "", detail: "the model returned NaN" })
      }
      yield* playout.give(pcm)
      piece = yield* playout.inTurn(reader.next)
      // Sent before the next piece exists: silence that is already there is time to make it in.
      if (piece !== undefined)
        playout.push(new Int16Array(pauseSamples(pause, utterance.speed, speaker.rateHz)))
    }
    return playout.end
  })

/** A request's place among the others. */
export const priorityOf = (request: SynthesizeRequest): "stream" | "batch" => request.priority ?? "stream"
