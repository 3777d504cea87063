// Speaks pieces of text, one after the other, as one answer of a conversation asks for them. It decides nothing: which piece is spoken
// when, and what of its audio is sent, is AnswerGiving's.
import { Effect, Schedule, type Scope } from "effect"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import { speechRateHz } from "#domain/audio/Audio.ts"
import type { SpokenWord } from "#domain/audio/TimedWords.ts"
import { LeadingSilence } from "#domain/conversation/LeadingSilence.ts"
import { speechTextWithin } from "#domain/language/StripMarkdown.ts"
import { Signal } from "#domain/queues/Signal.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { Caller } from "#services/Caller.ts"
import { type ModelRunServices, reserveFor } from "#services/ModelRun.ts"
import type { SpeechAdmission } from "#services/SpeechAdmission.ts"
import { beginSynthesis, speechAtMost } from "#services/Synthesis.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import type { UsageLedger } from "#store/ledger/UsageLedger.ts"

/** How often a piece asks a busy engine, every 100 ms: for 5 s altogether. A guess. */
const mostTries = 50

interface VoiceTerms {
  readonly caller: Principal
  readonly model: ModelHandle<"speech">
  readonly preset: string
  readonly speed: number
  readonly language: string
  readonly maxCharacters: number
}

interface VoiceListener {
  /** Audio without the silence with which an answer begins, and the words that begin with it. */
  readonly sounded: (samples: Int16Array, words: ReadonlyArray<SpokenWord>) => void
  readonly pieceSpoken: () => void
}

interface Asked {
  readonly piece: number
  readonly text: string
}

/** The word, where so many samples before it are left out. */
const earlier = ({ end, start, text }: SpokenWord, samples: number): SpokenWord => ({
  text,
  start: Math.max(0, start - samples),
  end: Math.max(0, end - samples),
})

export type VoiceServices = ModelRunServices | SpeechAdmission | UsageLedger

export class Voice {
  readonly #terms: VoiceTerms
  readonly #asked: Array<Asked> = []
  readonly #news = new Signal()
  readonly #silence = new LeadingSilence(speechRateHz)
  /** Counts the samples of a piece that are sent: they are charged when the scope closes. */
  readonly #charges = new Map<number, (samples: number) => void>()

  constructor(terms: VoiceTerms) {
    this.#terms = terms
  }

  /** The next piece. */
  speak(piece: number, text: string): void {
    this.#asked.push({ piece, text })
    this.#news.set()
  }

  /** So many samples of the piece are sent. */
  delivered(piece: number, samples: number): void {
    this.#charges.get(piece)?.(samples)
  }

  /** Speaks what is asked for. What was sent is charged when the scope closes. */
  run(listener: VoiceListener): Effect.Effect<never, EdgeError, VoiceServices | Scope.Scope> {
    return Effect.gen({ self: this }, function* (this: Voice) {
      for (;;) {
        const next = this.#asked.shift()
        if (next !== undefined) {
          yield* this.#make(next, listener)
          listener.pieceSpoken()
          continue
        }
        this.#news.clear()
        yield* this.#news.wait
      }
    })
  }

  #make(
    { piece, text }: Asked,
    { sounded }: VoiceListener,
  ): Effect.Effect<void, EdgeError, VoiceServices | Scope.Scope> {
    return Effect.gen({ self: this }, function* (this: Voice) {
      const { caller, language, maxCharacters, model, preset, speed } = this.#terms
      const spoken = speechTextWithin(text, maxCharacters) ?? ""
      if (spoken.trim() === "") return
      const request = { text: spoken, voice: { preset }, language, speed, priority: "stream" } as const
      const begun = Effect.gen(function* () {
        const reservation = yield* reserveFor(caller, model.entry, speechAtMost(spoken, speed))
        return yield* beginSynthesis({ model, request, reservation })
      })
      const synthesis = yield* begun.pipe(
        Effect.provideService(Caller, caller),
        Effect.retry({
          schedule: Schedule.spaced("100 millis"),
          times: mostTries,
          while: (error) => error._tag === "AtCapacity",
        }),
        // Such as a smiley alone: the voice finds nothing in it to pronounce.
        Effect.catchIf(
          (error) => error._tag === "SynthesisFailed" && error.field === "input",
          () => Effect.succeed(undefined),
        ),
      )
      if (synthesis === undefined) return
      this.#charges.set(piece, synthesis.delivered)
      let dropped = 0
      /** Words of chunks that were silence. */
      let silent: ReadonlyArray<SpokenWord> = []
      synthesis.read({
        take: ({ samples, words = [] }) => {
          const sounding = this.#silence.push(samples)
          dropped += samples.length - sounding.length
          silent = [...silent, ...words]
          if (sounding.length === 0) return
          const begin = silent.map((word) => earlier(word, dropped))
          silent = []
          sounded(sounding, begin)
        },
      })
      yield* synthesis.end
    })
  }
}
