// Conversions between samples, milliseconds and bytes. Pure. All audio here is mono; "pcm" means signed 16-bit
// little-endian.

/** Rate of all synthesized speech, samples a second (protocol 8.2). */
export const speechRateHz = 24_000

/** Input rate of the transcription models, samples a second (protocol 10.2). */
export const listenRateHz = 16_000

/** Bytes of a sample of 16-bit PCM. */
export const bytesPerSample = 2

/** The formats of synthesized speech (protocol 8.2). */
export type AudioFormat = "pcm" | "wav" | "mp3" | "opus"

export const samplesToMs = (samples: number, rateHz: number): number => (samples * 1000) / rateHz

/** Whole samples that fit in the time, so that rounding never exceeds a limit in ms. */
export const msToSamples = (ms: number, rateHz: number): number => Math.floor((ms * rateHz) / 1000)

export const samplesToSeconds = (samples: number, rateHz: number): number => samples / rateHz

export const secondsToSamples = (seconds: number, rateHz: number): number => Math.floor(seconds * rateHz)

export const samplesToBytes = (samples: number): number => samples * bytesPerSample

/** Whole samples in that many bytes; an odd last byte is not a sample. */
export const bytesToSamples = (sizeBytes: number): number => Math.floor(sizeBytes / bytesPerSample)

/**
 * 16-bit samples as floats in [-1, 1): divided by 32768, so that converting back gives the same samples.
 * @param samples s16
 * @returns f32, a new array
 */
export const s16ToF32 = (samples: Int16Array): Float32Array => {
  const out = new Float32Array(samples.length)
  for (let i = 0; i < samples.length; i++) out[i] = samples[i]! / 32_768
  return out
}

/**
 * Floats as 16-bit samples: rounded to nearest, clipped to [-32768, 32767]; NaN becomes 0.
 * @param samples f32, nominally in [-1, 1]
 * @returns s16, a new array
 */
export const f32ToS16 = (samples: Float32Array): Int16Array => {
  const out = new Int16Array(samples.length)
  for (let i = 0; i < samples.length; i++) {
    const scaled = Math.round(samples[i]! * 32_768)
    // A plain store would wrap around instead of clipping; NaN is stored as 0.
    out[i] = scaled > 32_767 ? 32_767 : scaled < -32_768 ? -32_768 : scaled
  }
  return out
}

const littleEndian = new Uint8Array(new Uint16Array([1]).buffer)[0] === 1

/**
 * The little-endian bytes of 16-bit samples. On little-endian machines (all that Node's binaries run on here) a view of
 * the same memory, so the samples must not be changed afterwards.
 */
export const s16ToBytes = (samples: Int16Array): Uint8Array => {
  if (littleEndian) return new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength)
  const out = new Uint8Array(samples.byteLength)
  const view = new DataView(out.buffer)
  for (let i = 0; i < samples.length; i++) view.setInt16(i * bytesPerSample, samples[i]!, true)
  return out
}

/** 16-bit samples from little-endian bytes, copied; an odd last byte is dropped. */
export const bytesToS16 = (bytes: Uint8Array): Int16Array => {
  const samples = new Int16Array(bytesToSamples(bytes.byteLength))
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength)
  for (let i = 0; i < samples.length; i++) samples[i] = view.getInt16(i * bytesPerSample, true)
  return samples
}
