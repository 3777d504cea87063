// Plays a PCM stream through Web Audio while it arrives. Each piece is an AudioBufferSourceNode that starts exactly where
// the piece before it ends, as the jitter buffer says. Scheduled nodes and not an AudioWorklet: worklets need a secure
// page, and playback works on any page.
import { JitterBuffer } from "./JitterBuffer.js"
import { PcmReader } from "./Pcm.js"

/** The browser does not play sound before the user has done something on the page. */
export class PlaybackBlocked extends Error {
  constructor() {
    super("the browser blocked the sound")
    this.name = "PlaybackBlocked"
  }
}

/** How long a browser may take to start its sound. A blocked one never does. A guess. */
const startMs = 2_000

export class Playback {
  #context
  #isShared
  #isStopped = false
  #reader = new PcmReader()
  /** @type {Set<AudioBufferSourceNode>} pieces that have not been played to their end */
  #playing = new Set()
  #ended = false
  /** @type {() => void} */
  #finish = () => {}

  /**
   * @param {{ sampleRate?: number, leadSeconds?: number, context?: AudioContext }} [options] `context`: that of the page, which several
   *   playbacks share and which `stop` does not close; by default one of its own
   */
  constructor({ sampleRate = 24_000, leadSeconds, context } = {}) {
    this.#isShared = context !== undefined
    this.#context = context ?? new AudioContext({ sampleRate })
    this.buffer = new JitterBuffer(sampleRate, leadSeconds)
    /** What is heard. Other nodes, such as an AnalyserNode, can be connected to it. */
    this.output = this.#context.createGain()
    this.output.connect(this.#context.destination)
    /**
     * Fulfilled when all of it has been played, or after `stop`.
     * @type {Promise<void>}
     */
    this.finished = new Promise((resolve) => {
      this.#finish = resolve
    })
  }

  /** Seconds of the player's clock, on which the times of `buffer.pieces` are. */
  get now() {
    return this.#context.currentTime
  }

  /** Seconds of the stream that have been played: those behind them can still be stopped. */
  get playedSeconds() {
    return this.buffer.playedAt(this.now)
  }

  /** Starts the sound. To be called in the handler of a click or key. Fails with PlaybackBlocked. */
  async start() {
    const waited = new Promise((resolve) => setTimeout(resolve, startMs))
    await Promise.race([this.#context.resume(), waited])
    if (this.#context.state === "running") return
    this.stop()
    throw new PlaybackBlocked()
  }

  /** @param {Uint8Array} bytes 16-bit little-endian samples; a piece may end inside one */
  push(bytes) {
    const samples = this.#reader.push(bytes)
    if (samples.length === 0 || this.#isStopped || this.#context.state === "closed") return
    const sound = this.#context.createBuffer(1, samples.length, this.buffer.sampleRate)
    sound.copyToChannel(samples, 0)
    const source = this.#context.createBufferSource()
    source.buffer = sound
    source.connect(this.output)
    this.#playing.add(source)
    source.addEventListener("ended", () => {
      this.#playing.delete(source)
      this.#finishIfDone()
    })
    source.start(this.buffer.push(samples.length, this.now).start)
  }

  /** No more audio comes. */
  end() {
    this.#ended = true
    this.#finishIfDone()
  }

  /** Ends the sound at once. */
  stop() {
    this.#isStopped = true
    if (this.#isShared) {
      for (const source of this.#playing) source.stop()
      this.output.disconnect()
    } else if (this.#context.state !== "closed") this.#context.close()
    this.#finish()
  }

  #finishIfDone() {
    if (this.#ended && this.#playing.size === 0) this.stop()
  }
}
