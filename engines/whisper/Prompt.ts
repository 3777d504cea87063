// The tokens in front of the decoder's output, and how many tokens it may then produce. Pure; called by the engine
// once a window.
import type { WhisperModel } from "./WhisperModel.ts"

export interface Prompt {
  readonly tokens: ReadonlyArray<number>
  /** Where `<|startoftranscript|>` stands: the no-speech probability is read there. */
  readonly startAt: number
  /** Most tokens to sample. */
  readonly sampleLimit: number
}

export interface PromptRequest {
  /** Language token, undefined for single-language models. */
  readonly languageToken: number | undefined
  readonly conditioning: ReadonlyArray<number>
  readonly timestamps: boolean
  /** Seconds of audio in the window, without padding. */
  readonly seconds: number
}

/**
 * Byte alphabets: nobody says more than 24 characters a second (measured on the demonstration model's training
 * texts), and each segment adds two timestamps; 30 for the shortest clips.
 */
const BYTES_PER_SECOND = 24
const BYTES_SPARE = 30

/** Half the context, 224 tokens of 448, for merged vocabularies: the reference decoder's limit. */
const sampleTokens = (model: WhisperModel, seconds: number): number =>
  model.byteTokens
    ? Math.ceil(BYTES_PER_SECOND * seconds) + BYTES_SPARE
    : Math.floor(model.targetPositions / 2)

export const promptOf = (model: WhisperModel, request: PromptRequest): Prompt => {
  const start = [
    model.startOfTranscript,
    ...(request.languageToken === undefined ? [] : [request.languageToken]),
    ...(request.languageToken === undefined || model.transcribe === undefined ? [] : [model.transcribe]),
    ...(request.timestamps ? [] : [model.noTimestamps]),
  ]
  const earlier = conditioningTail(model, request.conditioning, start.length, request.seconds)
  const front =
    earlier.length === 0 || model.startOfPrevious === undefined ? [] : [model.startOfPrevious, ...earlier]
  const tokens = [...front, ...start]
  const room = model.targetPositions - tokens.length
  return {
    tokens,
    startAt: front.length,
    sampleLimit: Math.max(1, Math.min(room, sampleTokens(model, request.seconds))),
  }
}

/**
 * Byte alphabets: the demonstration model was trained with up to 200 bytes of earlier text, and its word error rate
 * triples with more (measured).
 */
const BYTES_OF_CONDITIONING = 200

/** Most tokens of earlier text in front of a window: half the context less one, 223 of 448. */
export const conditioningLimit = (model: WhisperModel): number =>
  model.byteTokens ? BYTES_OF_CONDITIONING : Math.floor(model.targetPositions / 2) - 1

/** The end of the conditioning, never so much that the output lacks room. */
const conditioningTail = (
  model: WhisperModel,
  conditioning: ReadonlyArray<number>,
  startLength: number,
  seconds: number,
): ReadonlyArray<number> => {
  const room = model.targetPositions - startLength - 1 - sampleTokens(model, seconds)
  const most = Math.max(0, Math.min(conditioningLimit(model), room))
  return most === 0 ? [] : conditioning.slice(-most)
}

/** Characters of a request's prompt that are looked at: many more than 223 tokens can hold. */
const PROMPT_CHARACTERS = 4096

/** A request's context hint as tokens; the space in front is part of the published rule. */
export const encodeHint = (model: WhisperModel, hint: string): ReadonlyArray<number> => {
  const text = hint.trim().slice(-PROMPT_CHARACTERS)
  return text === "" ? [] : model.encode(` ${text}`)
}
