// Live captions over the node's WebSocket. A session of the node has a limit of audio (two minutes); then this client
// opens the next one and goes on with the audio that the old one did not transcribe, so that a talk may last longer.
import { captionAfter, noCaption, partsOf } from "./Captions.js"
import { cuesOfHistory, shifted } from "./Cues.js"

/** The node takes 16 kHz, 16 bit, mono (protocol 10.2). */
export const captionRate = 16_000
const bytesPerMs = (captionRate * 2) / 1000

/** Audio that is kept while a session opens, and to send again after a limit. A guess: far longer than either takes. */
const keptMs = 15_000

/** Close code of a session that has reached its limit (protocol 16.1). */
const sessionLimit = 4008

/**
 * @typedef {object} LiveView
 * @property {string} firm text that stays
 * @property {string} soft text that may still change
 * @property {number} sentMs audio that was sent
 * @property {number | undefined} lagMs how long before the newest caption came the last audio that it covers was sent
 * @property {ReadonlyArray<import("./Cues.js").Cue>} cues of what is final
 * @property {ReadonlyArray<number>} sessionsMs the audio of each session that has ended, whole milliseconds
 */

/** The session ended before its final result. `code` and `reason` are those of the socket, `detail` the node's error. */
export class LiveFailure extends Error {
  /**
   * @param {number} code
   * @param {string} reason
   * @param {string} detail
   * @param {boolean} wasOpen false where the socket was refused
   */
  constructor(code, reason, detail, wasOpen) {
    super(detail || reason || "the connection closed")
    this.name = "LiveFailure"
    this.code = code
    this.wasOpen = wasOpen
  }
}

export class LiveCaptions {
  #address
  #onChange
  /** @type {WebSocket | undefined} */
  #socket
  /** Audio of this session that is not sent yet, or may have to be sent again; `from` is its place in the session. */
  /** @type {Array<{ from: number, bytes: Uint8Array<ArrayBuffer> }>} */
  #kept = []
  /** Bytes of this session, sent or not. */
  #bytes = 0
  #sentBytes = 0
  /** @type {Array<{ bytes: number, atMs: number }>} how much of the session had been sent, and when */
  #sent = []
  #stopped = false
  #wasOpen = false
  #detail = ""
  #caption = noCaption
  /** @type {Array<string>} final texts of earlier sessions */
  #before = []
  /** @type {Array<import("./Cues.js").Cue>} */
  #cues = []
  #beforeMs = 0
  /** @type {Array<number>} */
  #sessionsMs = []
  /** @type {number | undefined} */
  #lagMs
  /** @type {(view: LiveView) => void} */
  #resolve = () => {}
  /** @type {(failure: LiveFailure) => void} */
  #reject = () => {}

  /**
   * Opens a session. Audio may be sent at once.
   * @param {{ address: () => { url: string, protocols?: Array<string> }, onChange?: (view: LiveView) => void }} options
   *   `address` is called for each session
   */
  constructor({ address, onChange = () => {} }) {
    this.#address = address
    this.#onChange = onChange
    /**
     * The last view: fulfilled after `stop`, or when the node ended the session in order. Fails with LiveFailure.
     * @type {Promise<LiveView>}
     */
    this.finished = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    this.#open()
  }

  /** @returns {LiveView} */
  get view() {
    const { firm, soft } = partsOf(this.#caption)
    const before = this.#before.map((text) => `${text} `).join("")
    const cues = this.#caption.isFinal
      ? [...this.#cues, ...shifted(cuesOfHistory(this.#caption.history), this.#beforeMs)]
      : this.#cues
    const sentMs = this.#beforeMs + this.#sentBytes / bytesPerMs
    const sessionsMs = this.#caption.isFinal ? [...this.#sessionsMs, this.#caption.audioMs] : this.#sessionsMs
    return { firm: before + firm, soft, sentMs, lagMs: this.#lagMs, cues, sessionsMs }
  }

  /** @param {Uint8Array<ArrayBuffer>} bytes samples of 16 kHz, 16 bit, little-endian */
  send(bytes) {
    if (this.#stopped || bytes.length === 0) return
    this.#kept.push({ from: this.#bytes, bytes })
    this.#bytes += bytes.length
    this.#sendKept()
  }

  /** No more audio comes: the node answers with the final result. */
  stop() {
    if (this.#stopped) return
    this.#stopped = true
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send('{"type":"stop"}')
  }

  #open() {
    const { protocols, url } = this.#address()
    const socket = new WebSocket(url, protocols)
    this.#socket = socket
    this.#caption = noCaption
    this.#detail = ""
    this.#sentBytes = 0
    this.#sent = []
    socket.onopen = () => {
      this.#wasOpen = true
      this.#sendKept()
      if (this.#stopped) socket.send('{"type":"stop"}')
    }
    socket.onmessage = ({ data }) => this.#received(JSON.parse(data))
    socket.onclose = ({ code, reason }) => this.#closed(code, reason)
  }

  #sendKept() {
    const socket = this.#socket
    for (const { bytes, from } of this.#kept) {
      if (socket?.readyState !== WebSocket.OPEN) break
      if (from < this.#sentBytes) continue
      socket.send(bytes)
      this.#sentBytes = from + bytes.length
      this.#sent.push({ bytes: this.#sentBytes, atMs: performance.now() })
    }
    const oldest = this.#bytes - keptMs * bytesPerMs
    while ((this.#kept[0]?.from ?? oldest) < oldest) this.#kept.shift()
  }

  /** @param {Record<string, any>} event */
  #received(event) {
    if (event.type === "error") this.#detail = event.error
    const before = this.#caption
    this.#caption = captionAfter(before, event)
    if (event.type === "transcript.text.delta") this.#lagMs = this.#lagOf(event.audio_ms * bytesPerMs)
    if (this.#caption !== before) this.#onChange(this.view)
  }

  /** Milliseconds since the audio up to there was sent. @param {number} bytes */
  #lagOf(bytes) {
    while ((this.#sent[0]?.bytes ?? bytes) < bytes) this.#sent.shift()
    const sent = this.#sent[0]
    return sent === undefined ? undefined : performance.now() - sent.atMs
  }

  /**
   * @param {number} code
   * @param {string} reason
   */
  #closed(code, reason) {
    if (!this.#caption.isFinal) {
      // A socket that was idle before any audio has no final result; that is no failure after `stop`.
      if (this.#stopped && code === 1000) return this.#resolve(this.view)
      return this.#reject(new LiveFailure(code, reason, this.#detail, this.#wasOpen))
    }
    if (code !== sessionLimit || (this.#stopped && this.#caption.audioMs * bytesPerMs >= this.#bytes))
      return this.#resolve(this.view)
    this.#cues = [...this.view.cues]
    this.#sessionsMs = [...this.view.sessionsMs]
    if (this.#caption.text !== "") this.#before.push(this.#caption.text)
    this.#beforeMs += this.#caption.audioMs
    // Whole samples: a piece that was cut by the limit is cut here at the same place.
    const end = this.#caption.audioMs * bytesPerMs
    this.#kept = this.#kept
      .filter(({ bytes, from }) => from + bytes.length > end)
      .map(({ bytes, from }) => ({
        from: Math.max(0, from - end),
        bytes: bytes.slice(Math.max(0, end - from)),
      }))
    this.#bytes -= end
    this.#open()
  }
}
