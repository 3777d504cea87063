// The header of a WAV file with 16-bit mono samples. Pure. WAV files of clients are read by the decoder process like
// every other format.
import { bytesPerSample, samplesToBytes } from "#domain/audio/Audio.ts"

/** RIFF chunk, "fmt " chunk of 16 bytes, head of the "data" chunk. */
export const wavHeaderBytes = 44

/** The RIFF size field has 32 bits and counts everything except the first 8 bytes. */
export const wavMaxSamples = Math.floor((0xffff_ffff - (wavHeaderBytes - 8)) / bytesPerSample)

/** The header before `samples` little-endian s16 samples: PCM (format 1), mono. */
export const wavHeader = (samples: number, rateHz: number): Uint8Array => {
  const header = new Uint8Array(wavHeaderBytes)
  const view = new DataView(header.buffer)
  const text = (at: number, word: string) => {
    for (let i = 0; i < word.length; i++) header[at + i] = word.charCodeAt(i)
  }
  const dataBytes = samplesToBytes(samples)
  text(0, "RIFF")
  view.setUint32(4, wavHeaderBytes - 8 + dataBytes, true)
  text(8, "WAVEfmt ")
  view.setUint32(16, 16, true)
  view.setUint16(20, 1, true)
  view.setUint16(22, 1, true)
  view.setUint32(24, rateHz, true)
  view.setUint32(28, samplesToBytes(rateHz), true)
  view.setUint16(32, bytesPerSample, true)
  view.setUint16(34, bytesPerSample * 8, true)
  text(36, "data")
  view.setUint32(40, dataBytes, true)
  return header
}
