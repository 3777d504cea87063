// Speaks one answer of a conversation: pieces of text are synthesised one after the other, and their audio is sent at about the pace
// at which it is played. Knows no events and no items.
import { Clock, Effect, Schedule, type Scope } from "effect"
import type { SocketError } from "effect/socket/Socket"
import type { ModelHandle } from "#actors/model/ModelHandle.ts"
import { SPEECH_RATE_HZ, secondsToSamples } from "#domain/audio/Audio.ts"
import type { SpokenWord } from "#domain/audio/TimedWords.ts"
import type { AnswerTimes } from "#domain/conversation/AnswerTimes.ts"
import { LeadingSilence } from "#domain/conversation/LeadingSilence.ts"
import type { PlayClock } from "#domain/conversation/PlayClock.ts"
import { speechTextWithin } from "#domain/language/StripMarkdown.ts"
import { monotonicMs, monotonicMsOf } from "#domain/queues/Monotonic.ts"
import { Signal } from "#domain/queues/Signal.ts"
import type { EdgeError } from "#domain/wire/Failures.ts"
import { Caller } from "#services/Caller.ts"
import { type ModelRunServices, reserveFor } from "#services/ModelRun.ts"
import type { SpeechAdmission } from "#services/SpeechAdmission.ts"
import { beginSynthesis, speechAtMost } from "#services/Synthesis.ts"
import type { Principal } from "#store/accounts/Accounts.ts"
import type { UsageLedger } from "#store/ledger/UsageLedger.ts"

/** Audio that is sent ahead of what has been played, milliseconds. A guess: longer than the pauses of most networks. */
const leadMs = 1_000

/** Audio of one event, samples: 100 ms. */
const eventSamples = SPEECH_RATE_HZ / 10

/** Audio that may wait to be sent before the next piece is synthesised. Speech is made several times faster than it is played. */
const mostWaiting = secondsToSamples(4, SPEECH_RATE_HZ)

/** How a piece waits for a busy engine: for 5 s altogether. A guess. */
const whileBusy = { schedule: Schedule.spaced("100 millis"), times: 50 }

/** What an answer does with its speech. */
export interface VoiceReader {
  /** The audio of a piece begins. */
  readonly began: (text: string) => Effect.Effect<void, SocketError>
  /** The next audio of the piece, and the words that begin with it; their samples count from the piece's first. */
  readonly sound: (samples: Int16Array, words: ReadonlyArray<SpokenWord>) => Effect.Effect<void, SocketError>
  /** All audio of the piece has been sent. */
  readonly ended: Effect.Effect<void, SocketError>
}

export interface VoiceTerms {
  readonly caller: Principal
  readonly model: ModelHandle<"speech">
  readonly preset: string
  readonly speed: number
  readonly language: string
  readonly maxCharacters: number
  readonly clock: PlayClock
  /** Whether audio is sent at the pace at which it is played. */
  readonly isPaced: boolean
  readonly times: AnswerTimes
}

interface Chunk {
  readonly samples: Int16Array
  readonly words: ReadonlyArray<SpokenWord>
}

interface Piece {
  readonly text: string
  readonly chunks: Array<Chunk>
  /** Samples of silence that were left out of it. */
  dropped: number
  hasBegun: boolean
  isMade: boolean
  /** Counts what is sent, which is charged. */
  delivered: (samples: number) => void
}

/** The word, where so many samples before it are left out. */
const earlier = ({ end, start, text }: SpokenWord, samples: number): SpokenWord => ({
  text,
  start: Math.max(0, start - samples),
  end: Math.max(0, end - samples),
})

export type VoiceServices = ModelRunServices | SpeechAdmission | UsageLedger

export class Voice {
  private readonly terms: VoiceTerms
  private readonly texts: Array<string> = []
  private readonly pieces: Array<Piece> = []
  private readonly silence = new LeadingSilence(SPEECH_RATE_HZ)
  /** There is more text, or no more will come. */
  private readonly said = new Signal()
  /** There is more audio, or a piece is complete. */
  private readonly made = new Signal()
  /** Audio was sent. */
  private readonly left = new Signal()
  private readonly hurried = new Signal()
  /** Its audio may be sent. */
  private readonly opened = new Signal()
  private isOpen = false
  private sounding: (() => void) | undefined
  private waitingSamples = 0
  private isPaced: boolean
  private hasEnded = false
  private isComplete = false
  /** Why not all of it was made. */
  private failure: EdgeError | undefined

  constructor(terms: VoiceTerms) {
    this.terms = terms
    this.isPaced = terms.isPaced
  }

  /** The next piece of text. */
  say(text: string): void {
    this.texts.push(text)
    this.said.set()
  }

  /** Called once, with the first audio, or when the first piece turns out to have none. */
  whenSounding(run: () => void): void {
    this.sounding = run
  }

  private hasSounded(): void {
    const run = this.sounding
    this.sounding = undefined
    run?.()
  }

  /** From now on audio is sent. Until then only the first piece of text is spoken. */
  open(): void {
    if (this.isOpen) return
    this.isOpen = true
    this.opened.set()
  }

  /** No more text follows. */
  end(): void {
    this.hasEnded = true
    this.said.set()
  }

  /** Sends all that is left without waiting for it to be played. */
  hurry(): void {
    this.isPaced = false
    this.hurried.set()
  }

  /** Speaks until everything has been sent. Where a piece fails, what was made of it and before it is sent first. */
  speak(reader: VoiceReader): Effect.Effect<void, EdgeError | SocketError, VoiceServices> {
    const making = this.makeAll.pipe(
      Effect.catch((error) => (this.isOpen ? Effect.sync(() => this.giveUp(error)) : Effect.fail(error))),
      Effect.andThen(Effect.never),
    )
    const sending = Effect.andThen(
      this.sendAll(reader),
      Effect.suspend(() => (this.failure === undefined ? Effect.void : Effect.fail(this.failure))),
    )
    return Effect.scoped(Effect.raceFirst(making, sending))
  }

  /** No more audio is made. */
  private giveUp(failure: EdgeError): void {
    this.failure = failure
    for (const piece of this.pieces) piece.isMade = true
    this.isComplete = true
    this.made.set()
  }

  private readonly makeAll: Effect.Effect<void, EdgeError, VoiceServices | Scope.Scope> = Effect.gen(
    { self: this },
    function* (this: Voice) {
      for (;;) {
        const text = this.texts.shift()
        if (text !== undefined) {
          yield* this.make(text)
          this.hasSounded()
          yield* this.opened.wait
          while (this.waitingSamples > mostWaiting) {
            this.left.clear()
            yield* this.left.wait
          }
          continue
        }
        if (this.hasEnded) break
        this.said.clear()
        yield* this.said.wait
      }
      this.isComplete = true
      this.made.set()
    },
  )

  /** Synthesises a piece. It is charged when the scope closes: for what was sent. */
  private make(text: string): Effect.Effect<void, EdgeError, VoiceServices | Scope.Scope> {
    return Effect.gen({ self: this }, function* (this: Voice) {
      const { caller, language, maxCharacters, model, preset, speed } = this.terms
      const piece: Piece = {
        text,
        chunks: [],
        dropped: 0,
        hasBegun: false,
        isMade: false,
        delivered: () => {},
      }
      this.pieces.push(piece)
      const complete = () => {
        piece.isMade = true
        this.made.set()
      }
      const spoken = speechTextWithin(text, maxCharacters) ?? ""
      if (spoken.trim() === "") return complete()
      const request = { text: spoken, voice: { preset }, language, speed, priority: "stream" } as const
      const begun = Effect.gen(function* () {
        const reservation = yield* reserveFor(caller, model.entry, speechAtMost(spoken, speed))
        return yield* beginSynthesis({ model, request, reservation })
      })
      const clock = yield* Clock.Clock
      const synthesis = yield* begun.pipe(
        Effect.provideService(Caller, caller),
        Effect.retry({ ...whileBusy, while: (error) => error._tag === "AtCapacity" }),
        // Such as a smiley alone: the voice finds nothing in it to pronounce.
        Effect.catchIf(
          (error) => error._tag === "SynthesisFailed" && error.field === "input",
          () => Effect.succeed(undefined),
        ),
      )
      if (synthesis === undefined) return complete()
      piece.delivered = synthesis.delivered
      /** Words of chunks that were silence. */
      let silent: ReadonlyArray<SpokenWord> = []
      synthesis.read({
        take: ({ samples, words = [] }) => {
          const sounding = this.silence.push(samples)
          piece.dropped += samples.length - sounding.length
          silent = [...silent, ...words]
          if (sounding.length === 0) return
          this.terms.times.reached("firstSamples", monotonicMsOf(clock))
          this.hasSounded()
          piece.chunks.push({ samples: sounding, words: silent.map((word) => earlier(word, piece.dropped)) })
          silent = []
          this.waitingSamples += sounding.length
          this.made.set()
        },
      })
      yield* synthesis.end
      complete()
    })
  }

  private sendAll(reader: VoiceReader): Effect.Effect<void, SocketError> {
    return Effect.gen({ self: this }, function* (this: Voice) {
      for (;;) {
        const [piece] = this.pieces
        const chunk = piece === undefined ? undefined : this.take(piece)
        if (piece !== undefined && (chunk !== undefined || piece.isMade)) {
          yield* this.opened.wait
          if (chunk !== undefined) yield* this.untilDue
          if (!piece.hasBegun) {
            piece.hasBegun = true
            yield* reader.began(piece.text)
          }
          if (chunk === undefined) {
            this.pieces.shift()
            yield* reader.ended
            continue
          }
          const { samples, words } = chunk
          const nowMs = yield* monotonicMs
          this.terms.clock.sent(samples.length, nowMs, samples)
          this.terms.times.reached("firstSent", nowMs)
          piece.delivered(samples.length)
          yield* reader.sound(samples, words)
          this.waitingSamples -= samples.length
          this.left.set()
          continue
        }
        if (this.isComplete && piece === undefined) return
        this.made.clear()
        yield* this.made.wait
      }
    })
  }

  /** Audio for one event; undefined if there is none yet. */
  private take({ chunks }: Piece): Chunk | undefined {
    const [chunk] = chunks
    if (chunk === undefined) return undefined
    const { samples, words } = chunk
    if (samples.length <= eventSamples) chunks.shift()
    else chunks[0] = { samples: samples.subarray(eventSamples), words: [] }
    return { samples: samples.subarray(0, eventSamples), words }
  }

  /** Completes when the next audio may be sent. */
  private readonly untilDue: Effect.Effect<void> = Effect.gen({ self: this }, function* (this: Voice) {
    if (!this.isPaced) return
    const waitMs = this.terms.clock.playedUntilMs - leadMs - (yield* monotonicMs)
    if (waitMs > 0) yield* Effect.raceFirst(Effect.sleep(waitMs), this.hurried.wait)
  })
}
