// A refused file with its reason, and the limits of rate and channels that both decoders apply.
import type { RejectReason } from "./DecoderWire.ts"

/** A refused file, and why. */
export class Rejected extends Error {
  readonly reason: RejectReason
  constructor(reason: RejectReason, detail: string) {
    super(detail)
    this.reason = reason
  }
}

/**
 * Telephone speech has 8 kHz. Below 4 kHz a forged header could multiply the output (a 32 KB WAV at 1 Hz is 4.5 hours).
 */
const minRateHz = 4_000
/** The highest rate of any recorder. Higher rates would need filters of unbounded memory. */
const maxRateHz = 768_000
const maxChannels = 32

/** @throws Rejected */
export const checkLayout = (rateHz: number, channels: number): void => {
  if (rateHz < minRateHz || rateHz > maxRateHz) {
    throw new Rejected("UnsupportedLayout", `A sample rate of ${rateHz} Hz is not supported`)
  }
  if (channels < 1 || channels > maxChannels) {
    throw new Rejected("UnsupportedLayout", `${channels} channels are not supported`)
  }
}

export const unmixable = (): Rejected =>
  new Rejected("UnsupportedLayout", "The channel layout is not supported")

export const unsupportedCodec = (name: string): Rejected =>
  new Rejected("UnsupportedCodec", `The audio codec (${name}) is not supported`)

export const noAudioTrack = (): Rejected => new Rejected("NoAudioTrack", "The file has no audio track")

/** @param what container or codec, with its noun, e.g. "mp3 file" or "aac stream" */
export const damaged = (what: string): Rejected =>
  new Rejected("NotAudio", `The ${what} is damaged beyond reading`)

export const empty = (): Rejected => new Rejected("Empty", "The file holds no audio")

export const tooMuchTime = (): Rejected => new Rejected("TooCostly", "The file takes too long to decode")
export const tooMuchMemory = (): Rejected =>
  new Rejected("TooCostly", "The file takes too much memory to decode")
