// What a speech engine takes and gives: text and a voice in, PCM out. Plain data that can be sent between processes.
import type { SpokenWord } from "#domain/audio/TimedWords.ts"

export interface SynthesizeRequest {
  readonly text: string
  /** The id of a preset voice, or a reference clip as 16-bit mono samples with its exact transcript. */
  readonly voice:
    | { readonly preset: string }
    | { readonly clip: Int16Array; readonly rateHz: number; readonly transcript: string }
  /** ISO-639-1. */
  readonly language: string
  /** 0.25 to 4; the duration is divided by it. */
  readonly speed: number
  /**
   * The pieces of a stream are computed before those of a batch reply while playback of the stream could run out of audio.
   * Default "stream".
   */
  readonly priority?: "stream" | "batch"
}

export interface SynthesizeStarted {
  /** Pieces that the text has been cut into so far, at least 1. Later pieces are cut while the first ones play. */
  readonly pieces: number
}

/** Mono PCM, s16, 24 kHz. The engine never reuses `samples` after `push`. */
export interface PcmChunk {
  readonly samples: Int16Array
  /** The words whose speech begins with this chunk and continues in later ones; their samples count from the reply's first. */
  readonly words?: ReadonlyArray<SpokenWord>
}

export interface SynthesizeEnd {
  readonly samples: number
  /** Time that the computation took without its waiting time, milliseconds; absent if it was not measured. */
  readonly computeMs?: number
}

export interface SpeechFacts {
  readonly slots: number
  readonly voices: ReadonlyArray<string>
  readonly languages: ReadonlyArray<string>
  /** Seconds of computation for a second of speech, measured while loading; absent if it was not measured. */
  readonly realTimeFactor?: number
  readonly summary: string
}
