// Mono WAV files by copying, so that a long one costs nothing.

const headBytes = 44

/** A WAV file of mono samples, as bytes: s16, or u8 with `sampleBytes` 1. */
export const wavOf = (pcm: Uint8Array, rateHz = 16_000, sampleBytes: 1 | 2 = 2): Buffer<ArrayBuffer> => {
  const file = Buffer.alloc(headBytes + pcm.length)
  file.write("RIFF", 0)
  file.writeUInt32LE(36 + pcm.length, 4)
  file.write("WAVEfmt ", 8)
  file.writeUInt32LE(16, 16)
  file.writeUInt16LE(1, 20)
  file.writeUInt16LE(1, 22)
  file.writeUInt32LE(rateHz, 24)
  file.writeUInt32LE(sampleBytes * rateHz, 28)
  file.writeUInt16LE(sampleBytes, 32)
  file.writeUInt16LE(8 * sampleBytes, 34)
  file.write("data", 36)
  file.writeUInt32LE(pcm.length, 40)
  file.set(pcm, headBytes)
  return file
}

/** The bytes of s16 samples. */
export const pcmOf = (samples: Int16Array): Uint8Array =>
  new Uint8Array(samples.buffer, samples.byteOffset, samples.byteLength)

/** The samples of a file that has the head of `wavOf`. */
export const samplesOf = (file: Uint8Array): Int16Array => {
  const pcm = new Uint8Array(file.subarray(headBytes))
  return new Int16Array(pcm.buffer, 0, pcm.length >> 1)
}
