// One conversation over the node's realtime WebSocket, or over a call: who said what, which of the node's words have been played, what is cut by
// an interruption, and how long each answer took. Knows the socket and a player, no page.
import { base64Of, bytesOf } from "./Base64.js"
import { Ledger } from "./Ledger.js"

/** PCM of the session, samples a second (protocol 19.1). */
export const conversationRate = 24_000

/**
 * Plays one answer; the class Playback of `audio` is one.
 * @typedef {object} AnswerPlayer
 * @property {(bytes: Uint8Array) => void} push
 * @property {() => void} end
 * @property {() => void} stop
 * @property {number} playedSeconds
 * @property {Promise<void>} finished
 */

/**
 * @typedef {object} Turn
 * @property {string} id
 * @property {"user" | "node"} who
 * @property {string} text of the user: what was understood so far; of the node: what has been played
 * @property {boolean} isOpen more may come
 * @property {boolean} isCut interrupted
 * @property {Ledger} [ledger] of an answer
 */

/** Who speaks, or what is waited for. @typedef {"listening" | "user" | "thinking" | "node"} Floor */

/**
 * @typedef {object} Answer
 * @property {string} id of its item
 * @property {Array<{ text: string, start: number }>} words with the seconds at which they begin
 * @property {AnswerPlayer | undefined} player
 * @property {number | undefined} cutSeconds
 * @property {boolean} isPlayed
 */

/** The socket ended. `wasOpen` is false where it was refused. */
export class TalkFailure extends Error {
  /** @param {number} code @param {string} reason @param {boolean} wasOpen */
  constructor(code, reason, wasOpen) {
    super(reason || "the connection closed")
    this.name = "TalkFailure"
    this.code = code
    this.wasOpen = wasOpen
  }
}

/** An answer of a call, which the browser plays: what is known is when it began. @implements {AnswerPlayer} */
class CallPlayer {
  #now
  #beganMs
  /** @type {number | undefined} */
  #stoppedMs
  #finish = () => {}

  /** @param {() => number} now milliseconds */
  constructor(now) {
    this.#now = now
    this.#beganMs = now()
    /** @type {Promise<void>} */
    this.finished = new Promise((resolve) => {
      this.#finish = resolve
    })
  }

  get playedSeconds() {
    return ((this.#stoppedMs ?? this.#now()) - this.#beganMs) / 1000
  }

  push() {}

  /** All of it was made, which says nothing of what was played. */
  end() {}

  stop() {
    this.#stoppedMs ??= this.#now()
    this.#finish()
  }
}

export class Conversation {
  #socket
  #isCall
  #makePlayer
  #onProblem
  #now
  #wasOpen = false
  #isClosed = false
  #userSpeaks = false
  #waits = false
  /** When the user's last turn ended. @type {number | undefined} */
  #endedMs
  /** @type {string | undefined} the response that is being made */
  #response
  /** @type {Ledger | undefined} */
  #ledger
  /** @type {Array<Turn>} */
  #turns = []
  /** @type {Map<string, Answer>} */
  #answers = new Map()
  /** Of a call: the item of each response. @type {Map<string, string>} */
  #items = new Map()
  /** @type {(value: void) => void} */
  #resolve = () => {}
  /** @type {(failure: TalkFailure) => void} */
  #reject = () => {}

  /**
   * @param {object} options
   * @param {{ url: string, protocols?: Array<string> }} [options.address] of a WebSocket
   * @param {import("./Call.js").Call} [options.call] a call that is connected, in place of an address
   * @param {Record<string, unknown>} options.session what `session.update` sets, without its type
   * @param {() => AnswerPlayer} options.makePlayer
   * @param {(message: string) => void} options.onProblem an event that could not be carried out, an answer that failed
   * @param {() => number} [options.now] milliseconds
   */
  constructor({ address, call, session, makePlayer, onProblem, now = () => performance.now() }) {
    this.#makePlayer = makePlayer
    this.#onProblem = onProblem
    this.#now = now
    /**
     * Fulfilled after `close`; fails with TalkFailure where the node ended the conversation.
     * @type {Promise<void>}
     */
    this.finished = new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
    })
    const socket = call ?? new WebSocket(address?.url ?? "", address?.protocols)
    this.#socket = socket
    this.#isCall = call !== undefined
    socket.onopen = () => {
      this.#wasOpen = true
      this.#send({ type: "session.update", session: { type: "realtime", ...session } })
    }
    socket.onmessage = (/** @type {{ data: any }} */ { data }) => this.#received(JSON.parse(data))
    socket.onclose = (/** @type {{ code: number, reason: string }} */ { code, reason }) => {
      for (const { player } of this.#answers.values()) player?.stop()
      if (this.#isClosed) this.#resolve()
      else this.#reject(new TalkFailure(code, reason, this.#wasOpen))
    }
    if (call !== undefined) call.onopen()
  }

  /** @returns {Floor} */
  get floor() {
    if (this.#userSpeaks) return "user"
    if (this.#playing !== undefined) return "node"
    return this.#waits || this.#response !== undefined ? "thinking" : "listening"
  }

  /** The turns in their order, as they are now, without answers of which no word was heard. @returns {ReadonlyArray<Turn>} */
  get turns() {
    for (const turn of this.#turns) {
      const answer = this.#answers.get(turn.id)
      if (answer !== undefined) turn.text = textOf(answer)
    }
    return this.#turns.filter(({ isCut, text }) => !isCut || text !== "")
  }

  /** @param {Uint8Array} pcm samples of 24 kHz, 16 bit, little-endian; a call takes the microphone's itself */
  hear(pcm) {
    if (!this.#isCall && this.#socket.readyState === WebSocket.OPEN)
      this.#send({ type: "input_audio_buffer.append", audio: base64Of(pcm) })
  }

  /** A turn by hand begins: the node's answer ends. */
  beginTurn() {
    this.interrupt()
    this.#userSpeaks = true
    this.#send({ type: "input_audio_buffer.clear" })
  }

  /** The turn by hand is over and is to be answered. */
  endTurn() {
    this.#userSpeaks = false
    this.#endedMs = this.#now()
    this.#waits = true
    this.#send({ type: "input_audio_buffer.commit" })
    this.#send({ type: "response.create" })
  }

  /** Ends the node's answer at what has been played. */
  interrupt() {
    if (this.#response !== undefined) this.#send({ type: "response.cancel", response_id: this.#response })
    if (this.#isCall) this.#send({ type: "output_audio_buffer.clear" })
    this.#cut()
  }

  close() {
    this.#isClosed = true
    for (const { player } of this.#answers.values()) player?.stop()
    this.#socket.close(1000)
  }

  /** @param {Record<string, unknown>} event */
  #send(event) {
    if (this.#socket.readyState === WebSocket.OPEN) this.#socket.send(JSON.stringify(event))
  }

  get #playing() {
    return [...this.#answers.values()].find(({ isPlayed, player }) => player !== undefined && !isPlayed)
  }

  /** Stops the sound at once, and tells the node how much of it was heard; of a call it knows that. */
  #cut() {
    const answer = this.#playing
    if (answer === undefined) return
    const seconds = answer.player?.playedSeconds ?? 0
    answer.cutSeconds = seconds
    answer.isPlayed = true
    answer.player?.stop()
    const turn = this.#turns.find(({ id }) => id === answer.id)
    if (turn !== undefined) {
      turn.isCut = true
      turn.isOpen = false
    }
    if (this.#isCall) return
    this.#send({
      type: "conversation.item.truncate",
      item_id: answer.id,
      content_index: 0,
      audio_end_ms: Math.floor(seconds * 1000),
    })
  }

  /** @param {string} id */
  #userTurn(id) {
    const known = this.#turns.find((turn) => turn.id === id)
    if (known !== undefined) return known
    /** @type {Turn} */
    const turn = { id, who: "user", text: "", isOpen: true, isCut: false }
    this.#turns.push(turn)
    return turn
  }

  /** @param {string} id @returns {Answer} */
  #answer(id) {
    const known = this.#answers.get(id)
    if (known !== undefined) return known
    /** @type {Turn} */
    const turn = { id, who: "node", text: "", isOpen: true, isCut: false }
    if (this.#ledger !== undefined) turn.ledger = this.#ledger
    this.#turns.push(turn)
    /** @type {Answer} */
    const answer = { id, words: [], player: undefined, cutSeconds: undefined, isPlayed: false }
    this.#answers.set(id, answer)
    return answer
  }

  /** @param {Answer} answer @param {string} delta */
  #play(answer, delta) {
    if (answer.cutSeconds !== undefined) return
    this.#playerOf(answer).push(bytesOf(delta))
  }

  /** @param {Answer} answer */
  #playerOf(answer) {
    if (answer.player !== undefined) return answer.player
    const player = this.#isCall ? new CallPlayer(this.#now) : this.#makePlayer()
    answer.player = player
    player.finished.then(() => {
      answer.isPlayed = true
      const turn = this.#turns.find(({ id }) => id === answer.id)
      if (turn !== undefined) turn.isOpen = false
    })
    return player
  }

  /** @param {string} response of a call @returns {Answer | undefined} */
  #answerTo(response) {
    const item = this.#items.get(response)
    return item === undefined ? undefined : this.#answer(item)
  }

  /** @param {Record<string, any>} event */
  #received(event) {
    const nowMs = this.#now()
    switch (event.type) {
      case "input_audio_buffer.speech_started":
        this.#userSpeaks = true
        this.#waits = false
        return this.#cut()
      case "input_audio_buffer.speech_stopped":
        this.#userSpeaks = false
        this.#waits = true
        this.#endedMs = nowMs
        return
      case "input_audio_buffer.committed":
        this.#userTurn(event.item_id)
        return
      case "conversation.item.input_audio_transcription.delta":
        this.#userTurn(event.item_id).text += event.delta
        return
      case "conversation.item.input_audio_transcription.completed": {
        const turn = this.#userTurn(event.item_id)
        turn.text = event.transcript
        turn.isOpen = false
        // A turn of which nothing was understood is not answered.
        if (event.transcript.trim() !== "") return
        this.#turns = this.#turns.filter((other) => other !== turn)
        this.#waits = false
        return
      }
      case "conversation.item.input_audio_transcription.failed":
        this.#waits = false
        this.#onProblem(event.error?.message ?? "the transcription failed")
        return
      case "response.created":
        this.#response = event.response.id
        this.#waits = false
        this.#ledger = new Ledger(this.#endedMs ?? nowMs)
        this.#ledger.reached("understood", nowMs)
        return
      case "response.output_audio_transcript.delta":
        this.#ledger?.reached("words", nowMs)
        this.#answer(event.item_id).words.push({ text: event.delta, start: event.start_time ?? 0 })
        return
      case "response.output_audio.delta":
        this.#ledger?.reached("sound", nowMs)
        return this.#play(this.#answer(event.item_id), event.delta)
      case "response.output_item.added":
        if (event.item.type === "message") this.#items.set(event.response_id, event.item.id)
        return
      case "output_audio_buffer.started": {
        this.#ledger?.reached("sound", nowMs)
        const answer = this.#answerTo(event.response_id)
        if (answer !== undefined && answer.cutSeconds === undefined) this.#playerOf(answer)
        return
      }
      case "output_audio_buffer.stopped":
        return this.#answerTo(event.response_id)?.player?.stop()
      case "output_audio_buffer.cleared":
        return this.#cut()
      case "conversation.item.truncated": {
        // The node knows better than this side what of a call was heard.
        const answer = this.#answers.get(event.item_id)
        if (this.#isCall && answer !== undefined) answer.cutSeconds = event.audio_end_ms / 1000
        return
      }
      case "response.latency":
        this.#ledger?.told(event)
        return
      case "response.done":
        return this.#ended(event.response)
      case "error":
        // The answer that was to be cancelled had ended meanwhile.
        if (event.error.code === "response_cancel_not_active") return
        this.#waits = false
        return this.#onProblem(event.error.message)
      default:
    }
  }

  /** @param {Record<string, any>} response */
  #ended(response) {
    if (response.id === this.#response) this.#response = undefined
    for (const { id } of response.output) this.#answers.get(id)?.player?.end()
    if (response.status === "failed")
      this.#onProblem(response.status_details?.error?.message ?? "the answer failed")
  }
}

/** The words of an answer that have been played. @param {Answer} answer */
const textOf = ({ cutSeconds, isPlayed, player, words }) => {
  const isWhole = isPlayed && cutSeconds === undefined
  const seconds = cutSeconds ?? player?.playedSeconds ?? 0
  return words
    .filter(({ start }) => isWhole || (player !== undefined && start < seconds))
    .map(({ text }) => text)
    .join("")
    .trim()
}
