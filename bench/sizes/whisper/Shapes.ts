// The dimensions of published Whisper models. Pure.

export interface WhisperShape {
  readonly name: string
  readonly width: number
  readonly heads: number
  readonly encoderLayers: number
  readonly decoderLayers: number
  readonly melBins: number
  /** Languages of the vocabulary; large-v3 added one. */
  readonly languages: number
}

export const whisperShapes = {
  base: {
    name: "base",
    width: 512,
    heads: 8,
    encoderLayers: 6,
    decoderLayers: 6,
    melBins: 80,
    languages: 99,
  },
  small: {
    name: "small",
    width: 768,
    heads: 12,
    encoderLayers: 12,
    decoderLayers: 12,
    melBins: 80,
    languages: 99,
  },
  turbo: {
    name: "large-v3-turbo",
    width: 1280,
    heads: 20,
    encoderLayers: 32,
    decoderLayers: 4,
    melBins: 128,
    languages: 100,
  },
} as const satisfies Record<string, WhisperShape>

export const headWidth = 64
export const melFrames = 3_000
/** Number of encoder outputs of a window; each covers 20 ms. */
export const positions = 1_500
export const windowSeconds = 30
/** Most tokens of prompt and output together. */
export const targetPositions = 448
