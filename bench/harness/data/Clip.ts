// A recording with its text, as 16 kHz WAV, which every server reads.
import { wavHeader } from "#audio/codecs/Wav.ts"
import { listenRateHz, s16ToBytes } from "#domain/audio/Audio.ts"
import { wordsOf } from "../figures/WordErrors.ts"

/** A part of the text and its time, seconds. */
export interface TimedText {
  readonly text: string
  readonly start: number
  readonly end: number
}

export interface Clip {
  readonly name: string
  /** The file as it is uploaded. */
  readonly bytes: Uint8Array
  readonly fileName: string
  /** Content type of the upload. */
  readonly type: string
  readonly seconds: number
  /** What is said. */
  readonly text: string
  /** s16, mono, 16 kHz: for live sessions. */
  readonly samples: Int16Array
  /** Where each word of `text` ends, seconds; estimated inside segments whose times are known. */
  readonly wordEnds: ReadonlyArray<number>
}

/** A word's share of its segment is that of its letters. */
export const wordEndsOf = (segments: ReadonlyArray<TimedText>): ReadonlyArray<number> =>
  segments.flatMap(({ end, start, text }) => {
    const words = wordsOf(text)
    const letters = words.reduce((sum, word) => sum + word.length, 0)
    let passed = 0
    return words.map((word) => {
      passed += word.length
      return start + ((end - start) * passed) / letters
    })
  })

/** A WAV file of 16-bit mono samples. */
export const wavOf = (samples: Int16Array, rateHz: number): Uint8Array =>
  Buffer.concat([wavHeader(samples.length, rateHz), s16ToBytes(samples)])

/** @param segments the times of its parts; where they are unknown, the text is taken to fill the recording */
export const makeClip = (
  name: string,
  samples: Int16Array,
  text: string,
  segments?: ReadonlyArray<TimedText>,
): Clip => {
  const seconds = samples.length / listenRateHz
  return {
    name,
    bytes: wavOf(samples, listenRateHz),
    fileName: `${name}.wav`,
    type: "audio/wav",
    seconds,
    text,
    samples,
    wordEnds: wordEndsOf(segments ?? [{ text, start: 0, end: seconds }]),
  }
}
