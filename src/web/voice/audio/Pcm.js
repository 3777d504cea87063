// Samples: 16-bit little-endian PCM, as the node sends and takes them, and numbers from -1 to 1, as browsers do.

/** Turns pieces of a PCM stream into samples. A piece may end in the middle of a sample. */
export class PcmReader {
  /** @type {number | undefined} the first byte of a sample whose second byte has not come */
  #odd

  /**
   * @param {Uint8Array} bytes
   * @returns {Float32Array<ArrayBuffer>} the samples that these bytes complete
   */
  push(bytes) {
    const carried = this.#odd === undefined ? 0 : 1
    const count = (bytes.length + carried) >> 1
    const samples = new Float32Array(count)
    let at = 0
    for (let i = 0; i < count; i++) {
      const low = i === 0 && this.#odd !== undefined ? this.#odd : (bytes[at++] ?? 0)
      const high = bytes[at++] ?? 0
      samples[i] = ((((high << 8) | low) << 16) >> 16) / 32768
    }
    if (at < bytes.length) this.#odd = bytes[at]
    else if (count > 0) this.#odd = undefined
    return samples
  }
}

/**
 * @param {Float32Array} samples louder ones than -1 to 1 are cut
 * @returns {Uint8Array<ArrayBuffer>} two bytes a sample
 */
export const pcmOf = (samples) => {
  const bytes = new Uint8Array(samples.length * 2)
  const view = new DataView(bytes.buffer)
  for (const [at, sample] of samples.entries())
    view.setInt16(at * 2, Math.max(-32768, Math.min(32767, Math.round(sample * 32768))), true)
  return bytes
}

/**
 * Joins pieces of the same kind.
 * @param {ReadonlyArray<Uint8Array>} pieces
 * @returns {Uint8Array<ArrayBuffer>}
 */
export const joined = (pieces) => {
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of pieces) {
    all.set(piece, at)
    at += piece.length
  }
  return all
}
