// The tokens in front of the decoder's output, and the limit of tokens it may then produce. Computed once a window.
// Pure.
import type { WhisperModel } from "./WhisperModel.ts"

export interface Prompt {
  readonly tokens: ReadonlyArray<number>
  /** Position of `<|startoftranscript|>`: the no-speech probability is read there. */
  readonly startAt: number
  /** Most tokens to sample. */
  readonly sampleLimit: number
}

interface PromptRequest {
  /** Language token, undefined for single-language models. */
  readonly languageToken: number | undefined
  readonly conditioning: ReadonlyArray<number>
  readonly timestamps: boolean
  /** The text is wanted in English. Absent: false. */
  readonly translate?: boolean
  /** Seconds of audio in the window, without padding. */
  readonly seconds: number
  /** See TranscribeRequest: a caption gets a shorter context and a lower token limit. */
  readonly caption?: boolean
}

/**
 * Byte alphabets: speech has at most 24 characters a second (measured on the demonstration model's training
 * texts), and each segment adds two timestamps; 30 for the shortest clips.
 */
const bytesPerSecond = 24
const bytesSpare = 30

/**
 * Most tokens a second of a caption in merged vocabularies, so that a repetition loop ends soon. Fast English has 6 tokens
 * a second; scripts that the vocabulary spells in bytes take several times as many. A guess.
 */
const captionTokensPerSecond = 16
const captionTokensSpare = 8

/** Half the context, 224 tokens of 448, for merged vocabularies: the reference decoder's limit. */
const sampleTokens = (model: WhisperModel, { caption, seconds }: PromptRequest): number => {
  if (model.byteTokens) return Math.ceil(bytesPerSecond * seconds) + bytesSpare
  const most = Math.floor(model.targetPositions / 2)
  if (caption !== true) return most
  return Math.min(most, Math.ceil(captionTokensPerSecond * seconds) + captionTokensSpare)
}

export const promptOf = (model: WhisperModel, request: PromptRequest): Prompt => {
  const task = request.translate === true ? model.translate : model.transcribe
  const start = [
    model.startOfTranscript,
    ...(request.languageToken === undefined ? [] : [request.languageToken]),
    ...(request.languageToken === undefined || task === undefined ? [] : [task]),
    ...(request.timestamps ? [] : [model.noTimestamps]),
  ]
  const earlier = conditioningTail(model, request, start.length)
  const front =
    earlier.length === 0 || model.startOfPrevious === undefined ? [] : [model.startOfPrevious, ...earlier]
  const tokens = [...front, ...start]
  const free = model.targetPositions - tokens.length
  return {
    tokens,
    startAt: front.length,
    sampleLimit: Math.max(1, Math.min(free, sampleTokens(model, request))),
  }
}

/**
 * Byte alphabets: the demonstration model was trained with up to 200 bytes of earlier text, and its word error rate
 * triples with more (measured).
 */
const bytesOfConditioning = 200

/** Most tokens of earlier text in front of a window: half the context minus one, 223 of 448. */
export const conditioningLimit = (model: WhisperModel): number =>
  model.byteTokens ? bytesOfConditioning : Math.floor(model.targetPositions / 2) - 1

/**
 * Tokens of earlier text in front of a caption: one or two sentences. Each adds a row of the vocabulary's width, and
 * 223 cost more than a caption of a few seconds (measured at base shape).
 */
const captionConditioning = 32

/** The last tokens of the conditioning, so many that the output still has space. */
const conditioningTail = (
  model: WhisperModel,
  request: PromptRequest,
  startLength: number,
): ReadonlyArray<number> => {
  const free = model.targetPositions - startLength - 1 - sampleTokens(model, request)
  const limit = request.caption === true ? captionConditioning : conditioningLimit(model)
  const most = Math.max(0, Math.min(limit, free))
  return most === 0 ? [] : request.conditioning.slice(-most)
}

/** Characters of a request's prompt that are tokenized: many more than 223 tokens can hold. */
const promptCharacters = 4096

/** A request's context hint as tokens. The leading space follows the published rule. */
export const encodeHint = (model: WhisperModel, hint: string): ReadonlyArray<number> => {
  const text = hint.trim().slice(-promptCharacters)
  return text === "" ? [] : model.encode(` ${text}`)
}
