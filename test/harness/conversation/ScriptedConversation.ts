// A realtime server that does exactly what a test says: it hears speech by loudness, waits for the silence it is told to wait for,
// and answers after a time with a tone. Over a real WebSocket on a port of 127.0.0.1.
import { once } from "node:events"
import { setTimeout as sleep } from "node:timers/promises"
import { type WebSocket, WebSocketServer } from "ws"
import { bytesToS16, s16ToBytes } from "#domain/audio/Audio.ts"
import type { Target } from "#harness/client/Exchange.ts"
import { makeClip } from "#harness/data/Clip.ts"
import { type ScriptedServer, scriptedServer } from "../ScriptedServer.ts"

export const rateHz = 24_000
const pieceSamples = rateHz / 50
/** Louder is speech. */
const loud = 1_000

export interface Script {
  /** From the end of a turn to its answer, by the turn's number from 0. */
  readonly delayMs: (turn: number) => number
  /** Silence at the beginning of each answer. */
  readonly leadMs?: number
  /** Sound of each answer, by the turn's number. */
  readonly answerMs?: (turn: number) => number
  /** How far the audio of an answer is sent before it is played, 100 ms if absent. */
  readonly aheadMs?: number
  /** Pieces of audio that still come after the user was heard. */
  readonly latePieces?: number
  /** Changes the events of an answer before they are sent. */
  readonly edit?: (events: ReadonlyArray<object>) => ReadonlyArray<object>
  /** What the conversation and the file endpoint say. */
  readonly transcript?: string
  readonly fileTranscript?: string
  /** How long a client waits for what does not come. */
  readonly timeoutMs?: number
  /** Replaces everything. */
  readonly onSession?: (socket: WebSocket) => void
}

export interface ScriptedConversation extends ScriptedServer {
  readonly target: Target
  /** Audio of each turn, as the server heard it. */
  readonly heard: Array<Int16Array>
  /** Uploads to the file endpoint. */
  readonly uploads: Array<Buffer>
  readonly types: Array<string>
  /** When each turn was over and its answer was sent; `performance.now()`, which the client in this process reads, too. */
  readonly turns: Array<Turn>
  sessions: number
}

interface Turn {
  /** The last piece with speech was read. */
  readonly heardMs: number
  /** The server was asked for an answer, by the silence or by the client. */
  readonly askedMs: number
  /** The first piece of the answer was sent. */
  sentMs: number
}

/** A tone of half the full amplitude. */
export const tone = (ms: number, hz = rateHz, amplitude = 16_000): Int16Array =>
  Int16Array.from(
    { length: Math.round((ms * hz) / 1000) },
    (_, at) => amplitude * Math.sin((2 * Math.PI * 300 * at) / hz),
  )

/** 100 ms of silence, speech, 100 ms of silence. */
export const clipOf = (name: string, speechMs: number) => {
  const speech = tone(speechMs, 16_000)
  const samples = new Int16Array(speech.length + 3_200)
  samples.set(speech, 1_600)
  return makeClip(name, samples, "one two")
}

const usage = {
  input_tokens: 5,
  output_tokens: 9,
  input_token_details: {},
  output_token_details: { text_tokens: 4 },
}

class Conversation {
  readonly #socket: WebSocket
  readonly #script: Script
  readonly #server: ScriptedConversation
  #silenceMs: number | undefined
  #all: Array<Int16Array> = []
  #heardSamples = 0
  #turnFrom: number | undefined
  #quietSamples = 0
  #heardMs = 0
  #turn = 0
  #answering: AbortController | undefined

  constructor(socket: WebSocket, script: Script, server: ScriptedConversation) {
    this.#socket = socket
    this.#script = script
    this.#server = server
    this.#say({ type: "session.created", session: {} })
    socket.on("message", (data: Buffer) => this.#take(JSON.parse(String(data))))
  }

  #say(...events: ReadonlyArray<object>): void {
    for (const event of events) if (this.#socket.readyState === 1) this.#socket.send(JSON.stringify(event))
  }

  // biome-ignore lint/suspicious/noExplicitAny: events of the client
  #take(event: any): void {
    if (this.#server.types.at(-1) !== event.type) this.#server.types.push(event.type)
    switch (event.type) {
      case "session.update":
        this.#silenceMs = event.session.audio.input.turn_detection?.silence_duration_ms
        return this.#say({ type: "session.updated", session: {} })
      case "input_audio_buffer.append":
        return this.#hear(bytesToS16(Buffer.from(event.audio, "base64")))
      case "input_audio_buffer.commit":
        return this.#commit(0, this.#heardSamples)
      case "response.create":
        return void this.#answer()
      case "response.cancel":
        return this.#interrupt()
    }
  }

  #hear(samples: Int16Array): void {
    this.#all.push(samples)
    this.#heardSamples += samples.length
    if (this.#silenceMs === undefined) return
    const last = samples.findLastIndex((sample) => Math.abs(sample) > loud)
    if (last >= 0) {
      this.#heardMs = performance.now()
      this.#quietSamples = samples.length - 1 - last
      if (this.#turnFrom !== undefined) return
      this.#turnFrom = this.#heardSamples - samples.length
      this.#say({
        type: "input_audio_buffer.speech_started",
        item_id: `u${this.#turn}`,
        audio_start_ms: this.#turnFrom / 24,
      })
      return this.#interrupt()
    }
    this.#quietSamples += samples.length
    if (this.#turnFrom === undefined || this.#quietSamples < this.#silenceMs * 24) return
    this.#say({
      type: "input_audio_buffer.speech_stopped",
      item_id: `u${this.#turn}`,
      audio_end_ms: this.#heardSamples / 24,
    })
    this.#commit(this.#turnFrom, this.#heardSamples)
    this.#turnFrom = undefined
    void this.#answer()
  }

  #commit(from: number, to: number): void {
    const whole = Int16Array.from(this.#all.flatMap((piece) => [...piece]))
    this.#server.heard.push(whole.slice(from, to))
    if (this.#silenceMs === undefined) {
      this.#all = []
      this.#heardSamples = 0
    }
    const item_id = `u${this.#turn}`
    const { transcript = "one two" } = this.#script
    this.#say(
      { type: "input_audio_buffer.committed", item_id, previous_item_id: null },
      { type: "conversation.item.input_audio_transcription.completed", item_id, transcript },
    )
  }

  #interrupt(): void {
    this.#answering?.abort()
  }

  async #answer(): Promise<void> {
    const {
      aheadMs = 100,
      answerMs: soundMs = () => 200,
      delayMs,
      edit = (events) => events,
      latePieces = 0,
      leadMs = 0,
    } = this.#script
    const turn = this.#turn++
    const answerMs = soundMs(turn)
    const times: Turn = { heardMs: this.#heardMs, askedMs: performance.now(), sentMs: 0 }
    this.#server.turns.push(times)
    const answering = new AbortController()
    this.#answering = answering
    const ids = { response_id: `r${turn}`, item_id: `a${turn}`, output_index: 0, content_index: 0 }
    const item = { id: `a${turn}`, type: "message" }
    // The client knows the end of the turn by now, however late it reads.
    const known = once(this.#socket, "pong")
    this.#socket.ping()
    await known
    await sleep(delayMs(turn))
    const begin = [
      { type: "response.created", response: { id: ids.response_id, status: "in_progress" } },
      { type: "response.output_item.added", ...ids, item },
      { type: "conversation.item.added", item },
      { type: "response.content_part.added", ...ids },
    ]
    const delta = (samples: Int16Array) => ({
      type: "response.output_audio.delta",
      ...ids,
      delta: Buffer.from(s16ToBytes(samples)).toString("base64"),
    })
    const end = (status: string, reason?: string) => [
      { type: "response.output_audio.done", ...ids },
      { type: "response.content_part.done", ...ids },
      { type: "conversation.item.done", item },
      { type: "response.output_item.done", ...ids, item },
      { type: "response.done", response: { id: ids.response_id, status, status_details: { reason }, usage } },
    ]
    this.#say(...edit(begin))
    const sound = new Int16Array((leadMs + answerMs) * 24)
    sound.set(tone(answerMs), leadMs * 24)
    // At the pace at which it is played.
    const startMs = performance.now()
    for (let at = 0; at < sound.length; at += pieceSamples) {
      const waitMs = startMs + at / 24 - aheadMs - performance.now()
      if (waitMs > 0) await sleep(waitMs, undefined, { signal: answering.signal }).catch(() => {})
      if (answering.signal.aborted) break
      if (at === 0) times.sentMs = performance.now()
      this.#say(delta(sound.subarray(at, at + pieceSamples)))
    }
    if (!answering.signal.aborted) return this.#say(...edit(end("completed")))
    for (let nth = 0; nth < latePieces; nth++) this.#say(delta(tone(20)))
    this.#say(...edit(end("cancelled", "turn_detected")))
  }
}

export const scriptedConversation = async (script: Script): Promise<ScriptedConversation> => {
  const uploads: Array<Buffer> = []
  const base = await scriptedServer({
    "/v1/audio/transcriptions": (_, response, body) => {
      uploads.push(body)
      response.writeHead(200, { "content-type": "application/json" })
      response.end(JSON.stringify({ text: script.fileTranscript ?? script.transcript ?? "one two" }))
    },
  })
  const server: ScriptedConversation = Object.assign(base, {
    heard: [],
    uploads,
    types: [],
    turns: [],
    sessions: 0,
  })
  const sockets = new WebSocketServer({ server: base.server })
  sockets.on("connection", (socket) => {
    server.sessions++
    socket.on("error", () => {})
    if (script.onSession === undefined) new Conversation(socket, script, server)
    else script.onSession(socket)
  })
  const { close } = base
  return Object.assign(server, {
    target: { ...base.target, timeoutMs: script.timeoutMs ?? 60_000 },
    close: async () => {
      for (const socket of sockets.clients) socket.terminate()
      sockets.close()
      await close()
    },
  })
}
