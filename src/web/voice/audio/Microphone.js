// Records the microphone as a stream of samples at the rate that the node takes. An AudioWorklet gives the browser's
// samples, a Resampler changes their rate on the page's thread.
import { Resampler } from "./Resampler.js"

/** Browsers give a microphone to secure pages only: HTTPS, or localhost. */
export class InsecurePage extends Error {
  constructor() {
    super("not on localhost or HTTPS")
    this.name = "InsecurePage"
  }
}

/** Whether this page may use a microphone at all. */
export const canRecord = () => isSecureContext && navigator.mediaDevices !== undefined

export class Microphone {
  #context
  #stream

  /**
   * @param {AudioContext} context
   * @param {MediaStream} stream
   */
  constructor(context, stream) {
    this.#context = context
    this.#stream = stream
  }

  /**
   * Asks for the microphone and begins to record.
   * @param {{ sampleRate?: number, processing?: boolean, onSamples: (samples: Float32Array<ArrayBuffer>) => void, onEnd?: () => void }} options
   *   `processing` is the browser's echo cancellation, noise suppression and gain control. They are made for calls between
   *   people, and a recogniser reads the result worse: of five clips, one run each, two got four or more wrong words
   *   with them and none without (Chromium, the built-in recogniser, 2026-11-23). A page that plays speech while it listens needs the echo
   *   cancellation. `onSamples` gets about 20 ms at a time; `onEnd` is called when the microphone is taken away
   * @returns {Promise<Microphone>} fails with InsecurePage, or with the browser's NotAllowedError, NotFoundError or
   *   NotReadableError
   */
  static async open({ sampleRate = 16_000, processing = false, onSamples, onEnd }) {
    if (!canRecord()) throw new InsecurePage()
    const stream = await navigator.mediaDevices.getUserMedia({
      audio: {
        channelCount: 1,
        echoCancellation: processing,
        noiseSuppression: processing,
        autoGainControl: processing,
      },
    })
    const context = new AudioContext()
    try {
      await context.audioWorklet.addModule(new URL("./microphoneWorklet.js", import.meta.url))
      await context.resume()
    } catch (error) {
      for (const track of stream.getTracks()) track.stop()
      context.close()
      throw error
    }
    const tap = new AudioWorkletNode(context, "edgewise-microphone", {
      numberOfOutputs: 0,
      channelCount: 1,
      channelCountMode: "explicit",
    })
    const resampler = new Resampler(context.sampleRate, sampleRate)
    tap.port.onmessage = ({ data }) => {
      const samples = resampler.push(data)
      if (samples.length > 0) onSamples(samples)
    }
    context.createMediaStreamSource(stream).connect(tap)
    for (const track of stream.getTracks()) track.addEventListener("ended", () => onEnd?.())
    return new Microphone(context, stream)
  }

  /** What the browser gives, for a call. */
  get stream() {
    return this.#stream
  }

  /** Ends the recording and gives the microphone back. */
  stop() {
    for (const track of this.#stream.getTracks()) track.stop()
    if (this.#context.state !== "closed") this.#context.close()
  }
}
