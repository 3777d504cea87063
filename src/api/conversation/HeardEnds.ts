// How long a silence of the user ends the turn of `semantic_vad` where the catalog has a model that hears the ends of turns (Smart Turn): it is
// asked about each silence once, with the sound of the turn so far. Its answer is of no use once speech goes on.
import { Effect } from "effect"
import { type Eagerness, semanticSilenceMs } from "#domain/activity/SemanticSilence.ts"
import { Signal } from "#domain/queues/Signal.ts"
import type { DetectionModel } from "#services/detection/DetectionModels.ts"
import type { TurnSilence } from "../live/Hearing.ts"

interface HeardEndTerms {
  readonly model: DetectionModel
  readonly eagerness: () => Eagerness
}

export class HeardEnds {
  readonly #terms: HeardEndTerms
  readonly #news = new Signal()
  /** The newest silence; one that has not been asked about is forgotten with it. */
  #silence: TurnSilence | undefined

  constructor(terms: HeardEndTerms) {
    this.#terms = terms
  }

  /** A silence within a turn. */
  readonly paused = (silence: TurnSilence): void => {
    this.#silence = silence
    this.#news.set()
  }

  /** Asks the model, about one silence at a time. Runs as long as the conversation. */
  readonly run: Effect.Effect<never> = Effect.forever(
    Effect.gen({ self: this }, function* (this: HeardEnds) {
      yield* this.#news.wait
      this.#news.clear()
      const silence = this.#silence
      this.#silence = undefined
      if (silence !== undefined) yield* Effect.raceFirst(this.#judge(silence), this.#news.wait)
    }),
  )

  #judge({ samples, setLength }: TurnSilence): Effect.Effect<void> {
    return Effect.map(this.#terms.model.detect({ samples }), (detected) => {
      // Without an answer the usual silence ends the turn.
      if (detected !== undefined) setLength(semanticSilenceMs(this.#terms.eagerness(), detected.scores[0]))
    })
  }
}
