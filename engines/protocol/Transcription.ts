// What a transcription engine takes and gives: a window of audio in, segments of text out. Plain data that can be sent
// between processes.
import type { SampleSpan } from "#domain/audio/SampleRing.ts"
import type { TranscriptSegment } from "#domain/audio/Transcript.ts"

/** One decoding window. Long audio is many requests, so that short requests can run between them. */
export interface TranscribeRequest {
  /** 16 kHz mono in [-1, 1]; at most the engine's window. */
  readonly samples: Float32Array
  /** ISO-639-1; undefined detects the language if the model can. */
  readonly language: string | undefined
  /** The caller's context hint. */
  readonly prompt: string
  /** Tokens of earlier windows of the same file, for conditioning; empty at the start. */
  readonly previousTokens: ReadonlyArray<number>
  readonly temperature: number
  /**
   * True: wanted. False: not wanted. Undefined: the model decides. Only models that have such a switch read it. The
   * gateway adds or removes punctuation where the text differs from what was wanted (`#domain/language/Punctuated.ts`).
   */
  readonly punctuation: boolean | undefined
  /** Whether times of single words are wanted. */
  readonly words: boolean
  /** Whether the probability of each token is wanted. Absent: false. */
  readonly logprobs?: boolean
  /** True: the text is wanted in English, whatever is spoken. Only sent to engines whose facts say `translates`. Absent: false. */
  readonly translate?: boolean
  /** Phrases that may occur, such as names, at most 1,000. Engines may ignore them. Absent: none. */
  readonly keywords?: ReadonlyArray<string>
  /** True if no audio follows this window. */
  readonly last: boolean
  /**
   * False decodes the window as one segment without times and consumes all of it: for one short utterance whose times
   * are not needed. Absent means true.
   */
  readonly timestamps?: boolean
  /**
   * Tokens of an earlier hypothesis for the start of the same window (`TranscribeEnd.tokens`). They are checked in
   * one decoder pass and kept only as far as a fresh decoding chooses the same tokens. Engines may ignore it.
   */
  readonly draft?: ReadonlyArray<number>
  /**
   * Names audio that grows. Of two requests with the same number, the samples of one are the beginning of the samples of
   * the other. The engine may reuse what it computed for one where the result stays the same. Engines may ignore it.
   */
  readonly stream?: number
  /**
   * The samples may be more than one window, at most `togetherSeconds` of the engine's facts. The engine transcribes as many
   * windows as it can, with the results that separate requests would give; the end holds for all of them. Engines may stop
   * after the first window.
   */
  readonly together?: boolean
  /**
   * The text is a caption that will be replaced, so it may be inexact where that is cheaper. Read by engines whose facts have
   * `captions`, for audio up to `captions.seconds`. Engines whose facts say `grows` transcribe as much of it as later audio cannot change.
   * Others transcribe as always.
   */
  readonly caption?: boolean
}

/** A request as it is sent to an engine process: the samples of a long file lie in shared memory of the node. */
export interface TranscribeCall extends Omit<TranscribeRequest, "samples"> {
  readonly samples: Float32Array | SampleSpan
}

export interface TranscribeStarted {
  readonly language: string
}

/** A segment of a transcript, whose times are seconds from the start of the window. */
export interface Segment extends Omit<TranscriptSegment, "windowStart"> {
  /** For several windows in one request: the sample at which the window of this segment begins. Absent: the first window. */
  readonly windowAt?: number
  /** On the last segment of a window that others follow in the same request: samples that are not needed again. */
  readonly finishedSamples?: number
}

export interface TranscribeEnd {
  readonly language: string
  /** Samples that are not needed again; the next window starts there. */
  readonly consumedSamples: number
  /** Conditioning for the next window, with the bytes of an incomplete character; empty after a reset. */
  readonly previousTokens: ReadonlyArray<number>
  /** All tokens of this window as the decoder chose them: the `draft` of the next request. */
  readonly tokens?: ReadonlyArray<number>
}

/** Costs measured while loading, milliseconds. */
export interface CaptionFacts {
  /** Longest audio of one request with `caption`, seconds. */
  readonly seconds: number
  /** Of such a request with half as much audio. */
  readonly captionMs: number
  /** Of a whole window. */
  readonly windowMs: number
}

/** Audio that is transcribed in chunks, one after the other: a chunk is complete with `aheadSeconds` of the audio behind it. */
export interface Chunks {
  readonly seconds: number
  readonly aheadSeconds: number
  /** Time of one chunk, as measured while loading, milliseconds. */
  readonly costMs: number
}

export interface TranscriptionFacts {
  readonly slots: number
  /** Longest window, seconds. */
  readonly windowSeconds: number
  /**
   * Lookahead in seconds. If a window holds more audio than this, its result is final: neither later audio nor `last`
   * can change it. Absent: `windowSeconds`.
   */
  readonly closedSeconds?: number
  /** Most audio of a request with `together`, seconds. Absent: one window a request. */
  readonly togetherSeconds?: number
  /**
   * The text of a request with `caption` is the beginning of every later text of the same audio, and costs only the audio that is new
   * (`stream`). A piece ends where it has been heard to end: less is consumed than was given, and that is final. Absent: it is not.
   */
  readonly grows?: Chunks
  /**
   * Requests that come at the same time share calls, so many at most, and cost less than one after the other. Live sessions send so many at a
   * time. Absent: none.
   */
  readonly sharedCalls?: number
  /** Present if a request with `caption` costs less than one without. */
  readonly captions?: CaptionFacts
  readonly languages: ReadonlyArray<string>
  /** Whether it can write in English what is spoken in another language. Absent: false. */
  readonly translates?: boolean
  readonly summary: string
}
