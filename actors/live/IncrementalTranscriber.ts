// Incremental transcription of a live session. Audio is transcribed in pieces as a file is (Transcriber): the final
// result is what a file of exactly this audio gets, and the cost grows with the new audio only.
//
// A piece that is closed, i.e. that later audio cannot change, is transcribed once, without a draft, so its text is
// exactly that of the file's piece. The open rest has captions until it is closed. If an engine makes captions cheaply
// they come from there and may be inexact (LiveCaptions). Otherwise the open rest is transcribed anew for every
// caption, with the tokens of the last one as a draft that the engine checks. The final pass takes no draft. Knows no
// clock, no socket and no speakers' turns.
//
// The text of some engines only grows (`grows` of their facts). Their captions are final as far as they go, and a piece is closed as soon as
// a caption has found its end.
import { Effect } from "effect"
import { listenRateHz, samplesToMs } from "#domain/audio/Audio.ts"
import { growingHypothesis, hypothesisOf, type LiveHypothesis } from "#domain/audio/LiveTranscript.ts"
import type { SegmentToken } from "#domain/audio/Transcript.ts"
import {
  nothingPunctuated,
  type Punctuating,
  type PunctuationChoice,
  punctuated,
} from "#domain/language/Punctuated.ts"
import type {
  Segment,
  TranscribeEnd,
  TranscribeRequest,
  TranscriptionEngine,
} from "#engines/protocol/Engine.ts"
import type { LiveAudio } from "./LiveAudio.ts"
import { type Captioner, LiveCaptions } from "./LiveCaptions.ts"

/** How a live session is transcribed. */
export interface LiveTranscriptionOptions {
  readonly language: string | undefined
  readonly prompt: string
  /** Phrases that may occur. Absent: none. */
  readonly keywords?: ReadonlyArray<string>
  readonly punctuation?: PunctuationChoice
  /** Whether hypotheses have the probabilities of their tokens. Absent: false. */
  readonly logprobs?: boolean
  /** Reuses nothing: every hypothesis is a fresh pass over all audio. For comparison in tests and benches only. */
  readonly fromScratch: boolean
}

/** What a call of the engine is for: a piece that is closed, a caption of the open rest, or the final result. */
export type LiveCall = "closing" | "caption" | "final"

/** One call of the engine. */
export type Transcribe<E> = (
  request: TranscribeRequest,
  onSegment: (segment: Segment) => void,
  call: LiveCall,
) => Effect.Effect<TranscribeEnd, E>

/** A position of the transcription, and the decoder state there. */
interface Place {
  readonly position: number
  readonly text: string
  readonly language: string | undefined
  readonly previousTokens: ReadonlyArray<number>
  readonly punctuating: Punctuating
  /** Tokens of the text, if they were asked for. */
  readonly logprobs: ReadonlyArray<SegmentToken>
}

interface Step {
  readonly place: Place
  readonly tokens: ReadonlyArray<number>
}

/** Limit of streams in a session: each of its samples (120 s of 16 kHz) could begin one. */
const streamsPerSession = 2 ** 21
let sessions = 0

export class IncrementalTranscriber<E> {
  readonly #firstStream = streamsPerSession * sessions++
  readonly #audio: LiveAudio
  readonly #options: LiveTranscriptionOptions
  readonly #transcribe: Transcribe<E>
  readonly #windowSamples: number
  readonly #closedSamples: number
  /** Whether the text of captions only grows. */
  readonly grows: boolean
  readonly #captions: LiveCaptions<E> | undefined
  readonly #start: Place
  #closed: Place
  #calls = 0
  /** Tokens of the last hypothesis, call by call from `closed` on. */
  #drafts: ReadonlyArray<ReadonlyArray<number>> = []

  constructor(
    audio: LiveAudio,
    facts: TranscriptionEngine["facts"],
    options: LiveTranscriptionOptions,
    transcribe: Transcribe<E>,
    captioner?: Captioner<E>,
  ) {
    this.#audio = audio
    this.#options = options
    this.#transcribe = transcribe
    this.#windowSamples = Math.floor(facts.windowSeconds * listenRateHz)
    this.#closedSamples = Math.ceil((facts.closedSeconds ?? facts.windowSeconds) * listenRateHz)
    this.grows = facts.grows !== undefined && captioner === undefined && !options.fromScratch
    this.#start = {
      position: 0,
      text: "",
      language: options.language,
      previousTokens: [],
      punctuating: nothingPunctuated,
      logprobs: [],
    }
    this.#closed = this.#start
    this.#captions =
      captioner === undefined || options.fromScratch
        ? undefined
        : new LiveCaptions(audio, options, captioner, this.#firstStream, nothingPunctuated)
  }

  /** Requests for captions since the last call; if captions are not made separately, all requests. */
  takeCalls(): number {
    const calls = this.#captions?.takeCalls() ?? this.#calls
    this.#calls = 0
    return calls
  }

  /** Whether captions come from another engine, which works while pieces are closed. */
  get closesBeside(): boolean {
    return this.#captions?.isApart ?? false
  }

  /** Whether `close` would transcribe anything of the first `until` samples. */
  hasToClose(until: number): boolean {
    return !this.#options.fromScratch && until - this.#closed.position > this.#closedSamples
  }

  /** A caption of the first samples; `until` gives their number at the time when they are read. */
  caption(until: () => number): Effect.Effect<LiveHypothesis, E> {
    return Effect.suspend(() => this.#captions?.caption(this.#closed, until) ?? this.open(until(), false))
  }

  /** Transcribes what is closed in the first `until` samples. Interrupting it loses one call at most. */
  close(until: number): Effect.Effect<void, E> {
    return Effect.gen({ self: this }, function* (this: IncrementalTranscriber<E>) {
      while (this.hasToClose(until)) {
        const { position } = this.#closed
        const samples = this.#audio.read(
          position,
          position + Math.min(this.#closedSamples + 1, this.#windowSamples),
        )
        const { place } = yield* this.#step(this.#closed, samples, {
          last: false,
          draft: [],
          call: "closing",
        })
        this.#close(place)
      }
    })
  }

  #close(place: Place): void {
    this.#closed = place
    this.#drafts = this.#drafts.slice(1)
    // A running caption may still read what is closed now.
    if (this.#captions === undefined) this.#audio.forgetBefore(place.position)
  }

  /** The text of the first `until` samples. */
  open(until: number, final: boolean): Effect.Effect<LiveHypothesis, E> {
    return Effect.gen({ self: this }, function* (this: IncrementalTranscriber<E>) {
      const drafts: Array<ReadonlyArray<number>> = []
      const closed = this.#options.fromScratch ? this.#start : this.#closed
      let place = closed
      while (place.position < until) {
        const to = Math.min(until, place.position + this.#windowSamples)
        const draft = final || this.#options.fromScratch ? [] : (this.#drafts[drafts.length] ?? [])
        const samples = this.#audio.read(place.position, to)
        const call = final ? "final" : "caption"
        const step = yield* this.#step(place, samples, { last: to === until, draft, call })
        drafts.push(step.tokens)
        place = step.place
        // The engine has found the end of a piece.
        if (this.grows && place.position < to) this.#close(place)
      }
      this.#drafts = drafts
      const rest = {
        language: place.language,
        audioMs: Math.floor(samplesToMs(until, listenRateHz)),
        ...(this.#options.logprobs === true ? { logprobs: place.logprobs } : {}),
      }
      // Added or removed marks depend on what follows.
      if (this.grows && !final && this.#options.punctuation === undefined)
        return growingHypothesis(place.text, rest)
      return hypothesisOf(closed.text, place.text.slice(closed.text.length), rest)
    })
  }

  #step(
    from: Place,
    samples: Float32Array,
    how: { readonly last: boolean; readonly draft: ReadonlyArray<number>; readonly call: LiveCall },
  ): Effect.Effect<Step, E> {
    return Effect.suspend(() => {
      const growing = this.grows && how.call === "caption"
      const request: TranscribeRequest = {
        samples,
        language: from.language,
        prompt: this.#options.prompt,
        ...(this.#options.logprobs === true ? { logprobs: true } : {}),
        ...(this.#options.keywords === undefined ? {} : { keywords: this.#options.keywords }),
        previousTokens: from.previousTokens,
        temperature: 0,
        punctuation: this.#options.punctuation,
        words: false,
        last: how.last && !growing,
        ...(growing ? { caption: true } : {}),
        ...(this.#options.fromScratch ? {} : { stream: this.#firstStream + from.position }),
        ...(how.draft.length === 0 ? {} : { draft: how.draft }),
      }
      this.#calls++
      const texts: Array<string> = []
      const logprobs = [...from.logprobs]
      const onSegment = (segment: Segment) => {
        texts.push(segment.text)
        for (const token of segment.logprobs ?? []) logprobs.push(token)
      }
      return Effect.map(this.#transcribe(request, onSegment, how.call), (end) => {
        // As for files: if the engine consumed nothing, the same request would be repeated forever.
        const consumed =
          end.consumedSamples > 0 ? Math.min(end.consumedSamples, samples.length) : samples.length
        const { language, previousTokens } = end
        const { punctuation } = this.#options
        const [shown, punctuating] = punctuated(punctuation, language, texts, from.punctuating)
        const text = from.text + shown.join("")
        const position = from.position + consumed
        const place = { position, text, language, previousTokens, punctuating, logprobs }
        return { place, tokens: end.tokens ?? [] }
      })
    })
  }
}
