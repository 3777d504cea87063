// Runs in the browser's audio thread: sends what the microphone gives to the page, in pieces of 20 ms.

class MicrophoneTap extends AudioWorkletProcessor {
  #piece = new Float32Array(Math.round(sampleRate / 50))
  #filled = 0

  /**
   * @param {Array<Array<Float32Array>>} inputs of one node with one channel; a block has 128 samples
   */
  process([channels]) {
    // Without an input the microphone has not started yet, or has ended.
    for (const sample of channels?.[0] ?? []) {
      this.#piece[this.#filled++] = sample
      if (this.#filled < this.#piece.length) continue
      this.port.postMessage(this.#piece.slice())
      this.#filled = 0
    }
    return true
  }
}

registerProcessor("edgewise-microphone", MicrophoneTap)
