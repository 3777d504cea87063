// A WAV file around samples: RIFF, mono, 16 bit.

/**
 * @param {Uint8Array<ArrayBuffer>} pcm 16-bit little-endian samples
 * @param {number} sampleRate
 * @returns {Blob}
 */
export const wavFile = (pcm, sampleRate) => {
  const head = new DataView(new ArrayBuffer(44))
  const text = (/** @type {number} */ at, /** @type {string} */ letters) => {
    for (const [i, letter] of [...letters].entries()) head.setUint8(at + i, letter.charCodeAt(0))
  }
  text(0, "RIFF")
  head.setUint32(4, 36 + pcm.length, true)
  text(8, "WAVEfmt ")
  head.setUint32(16, 16, true)
  head.setUint16(20, 1, true)
  head.setUint16(22, 1, true)
  head.setUint32(24, sampleRate, true)
  head.setUint32(28, sampleRate * 2, true)
  head.setUint16(32, 2, true)
  head.setUint16(34, 16, true)
  text(36, "data")
  head.setUint32(40, pcm.length, true)
  return new Blob([head.buffer, pcm], { type: "audio/wav" })
}
