// Captions of the open part of a live session, by requests that an engine answers cheaply and inexactly. The final
// result is not made here. Audio is captioned in parts of a few seconds, cut at quiet places: a part that is full is
// transcribed once more and kept, the newest one is transcribed again for every caption. When a piece has been closed,
// its text replaces its captions. Knows no clock, no socket and no session.
import { Effect } from "effect"
import { listenRateHz, samplesToMs } from "#domain/audio/Audio.ts"
import { hypothesisOf, type LiveHypothesis } from "#domain/audio/LiveTranscript.ts"
import { type Punctuating, type PunctuationChoice, punctuated } from "#domain/language/Punctuated.ts"
import type { Segment, TranscribeEnd, TranscribeRequest } from "#engines/protocol/Engine.ts"
import { firstPiece } from "#engines/shared/listening/QuietPoint.ts"
import type { LiveAudio } from "./LiveAudio.ts"

/** The engine that makes captions. */
export interface Captioner<E> {
  /** Longest audio of one request, seconds. */
  readonly seconds: number
  /** True for an engine other than the one of the final result: it works while that one closes pieces. */
  readonly isApart: boolean
  /** `request` is called when this request is first in the queue: the newest audio is read then. */
  readonly transcribe: (
    request: () => TranscribeRequest,
    onSegment: (segment: Segment) => void,
  ) => Effect.Effect<TranscribeEnd, E>
}

/** The end of the last closed piece. */
interface CaptionStart {
  readonly position: number
  readonly text: string
  readonly language: string | undefined
  readonly previousTokens: ReadonlyArray<number>
  readonly punctuating: Punctuating
}

interface CaptionOptions {
  readonly prompt: string
  readonly keywords?: ReadonlyArray<string>
  readonly punctuation?: PunctuationChoice
}

/** With so much audio a detected language is kept for the next captions, seconds. A guess. */
const detectionSeconds = 5

export class LiveCaptions<E> {
  readonly #audio: LiveAudio
  readonly #options: CaptionOptions
  readonly #captioner: Captioner<E>
  /** Added to a position: names the audio from there on, see TranscribeRequest. */
  readonly #firstStream: number
  readonly #maxSamples: number
  #start: CaptionStart | undefined
  /** Where the newest part begins; text, tokens and punctuation of the parts before it. */
  #at = 0
  #text = ""
  #language: string | undefined
  #previousTokens: ReadonlyArray<number> = []
  #punctuating: Punctuating
  /** Tokens of the newest part's last caption. */
  #draft: ReadonlyArray<number> = []
  #calls = 0

  constructor(
    audio: LiveAudio,
    options: CaptionOptions,
    captioner: Captioner<E>,
    firstStream: number,
    punctuating: Punctuating,
  ) {
    this.#audio = audio
    this.#options = options
    this.#captioner = captioner
    this.#firstStream = firstStream
    this.#maxSamples = Math.floor(captioner.seconds * listenRateHz)
    this.#punctuating = punctuating
  }

  get isApart(): boolean {
    return this.#captioner.isApart
  }

  /** Requests since the last call. */
  takeCalls(): number {
    const calls = this.#calls
    this.#calls = 0
    return calls
  }

  /** A caption of the audio behind `start`, up to the position that `until` gives when this caption is first in the queue. */
  caption(start: CaptionStart, until: () => number): Effect.Effect<LiveHypothesis, E> {
    return Effect.gen({ self: this }, function* (this: LiveCaptions<E>) {
      if (this.#start !== start) this.#begin(start)
      this.#audio.forgetBefore(start.position)
      while (this.#audio.total - this.#at > this.#maxSamples) yield* this.#keepPart()
      let end = this.#at
      const result = yield* this.#request(() => {
        end = Math.min(until(), this.#at + this.#maxSamples)
        return end
      })
      this.#draft = result.tokens
      const open = this.#text + result.text
      return hypothesisOf(start.text, open, {
        language: result.language,
        audioMs: Math.floor(samplesToMs(end, listenRateHz)),
      })
    })
  }

  #begin(start: CaptionStart): void {
    this.#start = start
    this.#at = start.position
    this.#text = ""
    this.#language = start.language ?? this.#language
    this.#previousTokens = start.previousTokens
    this.#punctuating = start.punctuating
    this.#draft = []
  }

  /** Transcribes the newest part up to a quiet place, and begins another one there. */
  readonly #keepPart = Effect.fnUntraced({ self: this }, function* (this: LiveCaptions<E>) {
    const at = this.#at
    const maxSamples = this.#maxSamples
    const samples = this.#audio.read(at, at + maxSamples)
    const searchSamples = Math.floor(maxSamples / 2)
    const length = firstPiece(samples, { maxSamples, searchSamples, rateHz: listenRateHz, last: false })
    const result = yield* this.#request(() => at + length)
    this.#at = at + length
    this.#text += result.text
    this.#previousTokens = result.previousTokens
    this.#punctuating = result.punctuating
    this.#draft = []
  })

  #request(until: () => number) {
    const texts: Array<string> = []
    let seconds = 0
    const request = (): TranscribeRequest => {
      const samples = this.#audio.read(this.#at, until())
      seconds = samples.length / listenRateHz
      return {
        samples,
        language: this.#language,
        prompt: this.#options.prompt,
        ...(this.#options.keywords === undefined ? {} : { keywords: this.#options.keywords }),
        previousTokens: this.#previousTokens,
        temperature: 0,
        punctuation: this.#options.punctuation,
        words: false,
        last: true,
        timestamps: false,
        caption: true,
        stream: this.#firstStream + this.#at,
        ...(this.#draft.length === 0 ? {} : { draft: this.#draft }),
      }
    }
    this.#calls++
    const onSegment = (segment: Segment) => void texts.push(segment.text)
    return Effect.map(this.#captioner.transcribe(request, onSegment), (end) => {
      const { language, previousTokens } = end
      if (seconds >= detectionSeconds) this.#language = language
      const { punctuation } = this.#options
      const [shown, punctuating] = punctuated(punctuation, language, texts, this.#punctuating)
      return { text: shown.join(""), language, previousTokens, punctuating, tokens: end.tokens ?? [] }
    })
  }
}
