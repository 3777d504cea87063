// One conversation: what the server sent and when, with a microphone and a loudspeaker on this side. As stock clients do, it stops
// playing when the server hears speech, and says how much was heard; in a call the server knows that itself.
import { bytesToS16 } from "#domain/audio/Audio.ts"
import { objectOf } from "../client/EventStream.ts"
import type { Target } from "../client/Exchange.ts"
import { oneLine, RequestFailed } from "../client/Failures.ts"
import { realtimeHz } from "../client/RealtimeRate.ts"
import { browserBufferMs, openCallTransport } from "./CallTransport.ts"
import { EventOrders } from "./EventOrders.ts"
import { Microphone, type SoundSource } from "./Microphone.ts"
import { AnswerAudio, isAudible, Playback } from "./Playback.ts"
import { openSocketTransport } from "./SocketTransport.ts"
import type { Transport, TransportName } from "./Transport.ts"

export type TurnDetection =
  | { readonly type: "server_vad"; readonly silence_duration_ms: number }
  | { readonly type: "semantic_vad"; readonly eagerness: "low" | "medium" | "high" | "auto" }
  | { readonly type: "none" }

export interface ConversationAsk {
  readonly model: string
  /** Absent: websocket. */
  readonly transport?: TransportName
  readonly turns: TurnDetection
  /** Absent: the server's default. */
  readonly voice: string | undefined
  readonly instructions: string | undefined
  /** Absent: no transcripts of the user are asked for. */
  readonly transcriptionModel: string | undefined
  readonly language: string | undefined
  readonly maxTokens: number
  readonly pieceMs: number
  /** Further events, where the server has them; others may refuse the field. Absent: not sent. */
  readonly include?: ReadonlyArray<string>
  /** Absent: clips are said. */
  readonly source?: SoundSource
}

/** An answer of the server. */
export interface Answer {
  readonly id: string
  readonly createdMs: number
  readonly audio: AnswerAudio
  itemId: string | undefined
  status: string | undefined
  reason: string | undefined
  tokens: number | undefined
  promptTokens: number | undefined
  /** When the server heard speech over it. */
  interruptedMs: number | undefined
  /** Audio that came after that. */
  lateDeltas: number
}

/** A turn of the user, as the server divided the audio. */
interface UserItem {
  readonly id: string
  startMs: number | undefined
  endMs: number | undefined
  transcript: string | undefined
  transcribedMs: number | undefined
}

/** What came in a turn. */
export class Heard {
  readonly answers: Array<Answer> = []
  readonly items: Array<UserItem> = []
  readonly started: Array<number> = []
  readonly stopped: Array<number> = []
  /** Answers that the client stopped playing. */
  readonly cuts: Array<{ readonly answer: Answer; readonly atMs: number }> = []
}

type Fields = Readonly<Record<string, unknown>>

const fieldsIn = (value: unknown): Fields =>
  typeof value === "object" && value !== null ? (value as Fields) : {}

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")

/** Bytes that wait to be sent, at most: a server that does not read. Half a minute of audio. */
const mostWaitingBytes = 2 * 2 ** 20

/** Errors that answer a cancel or cut which came when there was nothing left to end. */
const harmless = /response_cancel_not_active|item_truncate/

export class Session {
  readonly orders = new EventOrders()
  readonly playback = new Playback(realtimeHz)
  readonly microphone: Microphone
  /** Answers that may still send audio or be played. */
  answers: ReadonlyArray<Answer> = []
  heard = new Heard()
  readonly #ask: ConversationAsk
  readonly #isCall: boolean
  #transport: Transport | undefined
  /** Of a call: the answer that the server says it is playing. */
  #spoken: Answer | undefined
  #failure: RequestFailed | undefined
  #isReady = false
  #items = new Map<string, UserItem>()
  #wake: (() => void) | undefined

  readonly #onEvent: (event: Fields, atMs: number) => void
  readonly #onSound: (samples: Int16Array) => void

  /**
   * @param onEvent sees every event of the server first
   * @param onSound gets what is to be played
   */
  constructor(
    ask: ConversationAsk,
    onEvent: (event: Fields, atMs: number) => void = () => {},
    onSound: (samples: Int16Array) => void = () => {},
  ) {
    this.#ask = ask
    this.#isCall = ask.transport === "webrtc"
    this.#onEvent = onEvent
    this.#onSound = onSound
    this.microphone = new Microphone({
      pieceMs: ask.pieceMs,
      isOpen: ask.turns.type !== "none",
      source: ask.source,
      send: (samples) => this.#through((transport) => transport.say(samples)),
    })
  }

  /** Audio that a player holds back before it begins, milliseconds. */
  get bufferMs(): number {
    return this.#isCall ? browserBufferMs : 0
  }

  get isOver(): boolean {
    return this.#failure !== undefined
  }

  /** Opens the connection and settles the session. Fails with RequestFailed. */
  async open(target: Target, signal: AbortSignal): Promise<void> {
    const opening = (this.#isCall ? openCallTransport : openSocketTransport)(target, this.#ask.model, {
      event: (text, atMs) => {
        const event = text === undefined ? undefined : objectOf(text)
        if (event === undefined) this.end(new RequestFailed("wrong reply", "a frame that is not JSON"))
        else this.#see(event, atMs)
      },
      sound: (samples, atMs) => this.#hear(samples, atMs),
      ended: (failure) => this.end(failure),
    })
    const transport = await opening
    this.#transport = transport
    if (this.#failure !== undefined) transport.close()
    this.send({ type: "session.update", session: this.#settings })
    await this.until(() => this.#isReady, performance.now() + target.timeoutMs, "no session.updated", signal)
    this.microphone.start()
  }

  get #settings(): object {
    const { include, instructions, language, maxTokens, transcriptionModel, turns, voice } = this.#ask
    const format = { type: "audio/pcm", rate: realtimeHz }
    const transcription =
      transcriptionModel === undefined
        ? null
        : { model: transcriptionModel, ...(language === undefined ? {} : { language }) }
    return {
      type: "realtime",
      output_modalities: ["audio"],
      max_output_tokens: maxTokens,
      ...(instructions === undefined ? {} : { instructions }),
      ...(include === undefined ? {} : { include }),
      audio: {
        input: {
          format,
          transcription,
          turn_detection:
            turns.type === "none" ? null : { ...turns, create_response: true, interrupt_response: true },
        },
        output: { format, ...(voice === undefined ? {} : { voice }) },
      },
    }
  }

  send(event: object): void {
    this.#through((transport) => transport.send(event))
  }

  #through(use: (transport: Transport) => void): void {
    const transport = this.#transport
    if (transport === undefined || this.#failure !== undefined) return
    if (transport.waitingBytes() > mostWaitingBytes)
      return this.end(new RequestFailed("timeout", "the server does not read the audio"))
    use(transport)
  }

  /** Closes the connection; further waiting fails with the failure. */
  end(failure: RequestFailed): void {
    if (this.#failure !== undefined) return
    this.#failure = failure
    this.microphone.stop()
    this.#transport?.close()
    this.#wake?.()
  }

  /**
   * Waits for a condition that events or the time bring about. Fails with RequestFailed. One reader at a time.
   *
   * The condition and the next moment are asked about the same reading of the clock. With two readings, a moment that passed
   * between them would be neither reached in the first nor to come in the second, and nothing would wake for it.
   */
  async until(
    holds: (nowMs: number) => boolean,
    limitMs: number,
    otherwise: string,
    signal: AbortSignal,
    /** Look again at this moment without an event. */
    nextMs: (nowMs: number) => number = () => limitMs,
  ): Promise<void> {
    const onAbort = () => this.end(new RequestFailed("unfinished", "the run ended before the turn"))
    if (signal.aborted) onAbort()
    signal.addEventListener("abort", onAbort)
    try {
      for (;;) {
        if (this.#failure !== undefined) throw this.#failure
        const nowMs = performance.now()
        if (holds(nowMs)) return
        if (nowMs >= limitMs) throw new RequestFailed("timeout", otherwise)
        const { promise, resolve } = Promise.withResolvers<void>()
        this.#wake = resolve
        // A timer may fire a millisecond early.
        const timer = setTimeout(resolve, Math.max(1, Math.min(limitMs, nextMs(nowMs)) - nowMs))
        await promise
        clearTimeout(timer)
      }
    } finally {
      signal.removeEventListener("abort", onAbort)
    }
  }

  // ------------------------------------------------------------ events

  #itemOf(id: unknown): UserItem {
    const key = textOf(id)
    const known = this.#items.get(key)
    if (known !== undefined) return known
    const item: UserItem = {
      id: key,
      startMs: undefined,
      endMs: undefined,
      transcript: undefined,
      transcribedMs: undefined,
    }
    this.#items.set(key, item)
    this.heard.items.push(item)
    return item
  }

  #answerOf(id: unknown): Answer | undefined {
    return this.answers.find((one) => one.id === id)
  }

  #see(event: Fields, atMs: number): void {
    this.orders.see(event)
    this.#onEvent(event, atMs)
    const type = textOf(event.type)
    switch (type) {
      case "session.updated":
        this.#isReady = true
        break
      case "input_audio_buffer.speech_started":
        this.#itemOf(event.item_id).startMs = Number(event.audio_start_ms)
        this.heard.started.push(atMs)
        this.interrupted(atMs)
        break
      case "input_audio_buffer.speech_stopped":
        this.#itemOf(event.item_id).endMs = Number(event.audio_end_ms)
        this.heard.stopped.push(atMs)
        break
      case "input_audio_buffer.committed":
        this.#itemOf(event.item_id)
        break
      case "conversation.item.input_audio_transcription.completed": {
        const item = this.#itemOf(event.item_id)
        item.transcript = textOf(event.transcript)
        item.transcribedMs = atMs
        break
      }
      case "output_audio_buffer.started":
        this.#spoken = this.#answerOf(event.response_id)
        this.playback.isContinued = true
        break
      case "output_audio_buffer.cleared":
        if (this.#spoken !== undefined) this.heard.cuts.push({ answer: this.#spoken, atMs })
        this.playback.stop(atMs)
        this.#spoken = undefined
        this.playback.isContinued = false
        break
      case "output_audio_buffer.stopped":
        this.#spoken = undefined
        this.playback.isContinued = false
        break
      case "error":
        this.#error(event)
        break
      default:
        if (type.startsWith("response.")) this.#answer(type, event, atMs)
    }
    this.#wake?.()
  }

  #error(event: Fields): void {
    const { code, message } = fieldsIn(event.error)
    if (harmless.test(textOf(code))) return
    this.end(new RequestFailed("error event", oneLine(textOf(message) || "the server sent an error event")))
  }

  #answer(type: string, event: Fields, atMs: number): void {
    if (type === "response.created") {
      const { id } = fieldsIn(event.response)
      const answer: Answer = {
        id: textOf(id),
        createdMs: atMs,
        audio: new AnswerAudio(),
        itemId: undefined,
        status: undefined,
        reason: undefined,
        tokens: undefined,
        promptTokens: undefined,
        interruptedMs: undefined,
        lateDeltas: 0,
      }
      this.answers = [...this.answers, answer].slice(-8)
      this.heard.answers.push(answer)
      return
    }
    if (type === "response.done") {
      const { id, status, status_details, usage } = (event.response ?? {}) as Readonly<
        Record<string, unknown>
      >
      const answer = this.#answerOf(id)
      if (answer === undefined) return
      const details = fieldsIn(status_details)
      const failed = fieldsIn(details.error)
      const { input_tokens, output_token_details, output_tokens } = fieldsIn(usage)
      // Servers count audio in tokens of their own kinds; text is comparable.
      const tokens = fieldsIn(output_token_details).text_tokens ?? output_tokens
      answer.status = textOf(status)
      answer.reason = textOf(details.reason) || textOf(failed.message)
      if (typeof tokens === "number") answer.tokens = tokens
      if (typeof input_tokens === "number") answer.promptTokens = input_tokens
      return
    }
    if (type !== "response.output_audio.delta") return
    const answer = this.#answerOf(event.response_id)
    if (answer === undefined) return
    answer.itemId ??= textOf(event.item_id)
    this.#play(answer, bytesToS16(Buffer.from(textOf(event.delta), "base64")), atMs)
  }

  #play(answer: Answer, samples: Int16Array, atMs: number): void {
    if (answer.interruptedMs !== undefined) {
      answer.lateDeltas++
      // It came, but is not played.
      answer.audio.deliveries.push({ atMs, audioMs: answer.audio.audioMs })
      return
    }
    this.playback.arrived(answer.audio, samples, atMs)
    this.#onSound(samples)
  }

  /** Audio of a call. It may come a little before the event that says whose it is. */
  #hear(samples: Int16Array, atMs: number): void {
    if (this.#spoken === undefined && !samples.some(isAudible)) return
    const answer = this.#spoken ?? this.answers.findLast(({ interruptedMs }) => interruptedMs === undefined)
    if (answer !== undefined) this.#play(answer, samples, atMs + browserBufferMs)
    this.#wake?.()
  }

  /** The user speaks: nothing that came so far is played any more. */
  interrupted(atMs: number): void {
    const playing = this.playback.isPlaying(atMs)
    const last = this.answers.findLast(({ audio, itemId }) => itemId !== undefined && audio.audioMs > 0)
    for (const answer of this.answers) answer.interruptedMs ??= atMs
    if (this.#isCall) {
      // Where the server divides the turns, it has stopped by itself.
      if (this.#ask.turns.type === "none" && playing) this.send({ type: "output_audio_buffer.clear" })
      return
    }
    if (last === undefined || !playing) return
    const playedMs = this.playback.playedMs(last.audio, atMs)
    this.playback.stop(atMs)
    this.heard.cuts.push({ answer: last, atMs })
    this.send({
      type: "conversation.item.truncate",
      item_id: last.itemId,
      content_index: 0,
      audio_end_ms: Math.floor(playedMs),
    })
  }
}
