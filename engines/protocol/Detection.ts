// What a detection engine takes and gives: pieces of audio in, probabilities out. Plain data that can be sent between processes. The engine
// keeps nothing between requests: what one piece leaves for the next of the same audio travels with them, so an engine that was started again
// goes on where the former one ended, and pieces of several sessions share a request.

/** What a model detects: speech in each step of audio, or whether a speaker's turn has ended. */
export type Detects = "speech" | "turn ends"

/** A piece of one session's audio. */
export interface DetectPiece {
  /** 16 kHz s16. For speech whole steps; for the end of a turn all of the turn, of which the last seconds count. */
  readonly samples: Int16Array
  /** What the piece before left, if the model leaves something. Absent: the audio begins. */
  readonly memory?: Float32Array
}

export interface DetectRequest {
  /** At least one, each of another session. */
  readonly pieces: ReadonlyArray<DetectPiece>
}

export interface DetectStarted {
  readonly pieces: number
}

/** The result of one piece. Units arrive in the order of the pieces. */
export interface Detected {
  /** Probabilities, 0 to 1: of speech in each step, or one that the turn is complete. */
  readonly scores: Float32Array
  readonly memory?: Float32Array
}

export interface DetectEnd {
  readonly pieces: number
}

export interface DetectionFacts {
  readonly detects: Detects
  /** Requests that run side by side. */
  readonly slots: number
  readonly summary: string
}

/** Samples of a step of speech detection: 32 ms. */
export const speechStepSamples = 512

/** Most samples of a turn that are listened to: 8 s. */
export const turnEndSamples = 128_000
