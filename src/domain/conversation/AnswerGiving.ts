// One answer of a conversation, from its first event to its last: what of it is written, spoken, sent, played, kept and charged. `decide`
// takes what is known and what has happened, and gives what is known then and what is to be done, in this order. It knows no engine, no
// socket and no clock. `Answer` (src/api) tells it of events and carries out its commands.
//
// It stands beside TurnTaking, which decides that an answer begins, is released, is cut short: those are events here. It is a decider of
// its own because a conversation has several answers at a time, and because text and audio come by function calls, many a second, which
// must not wait behind an event of the client in the conversation's mailbox.
//
// An answer is `held`, `given` or `over`.
//
// Held: it is prepared while the user may still go on. The model writes and the first piece of text is spoken, and nothing is sent, kept or
// charged. `released` makes it given: what was written is sent at once. A failure, `cancel` and `discard` end it without a trace.
//
// Given: `response.created` is sent first. Text of the model begins the message with its first word; white space before that is dropped.
// A message that is written is sent as it comes. One that is spoken is cut into pieces, which are spoken one after the other: the next one
// while less than `mostWaiting` of audio waits. The model is paused from its first clause to the first audio of it. Audio is sent in events of 100 ms,
// one at a time, where the pace is that of playing at most `leadMs` before it is played; `hurry` ends that. The next one is decided when all
// before is written to the socket, so what a cut finds decided is also sent. Captions go out with the audio
// that they belong to. Calls of functions are sent while they are written, and end when the model has written everything, before the
// speech does, so that a client can run them meanwhile. When the model has written everything and the speech is sent, it is over.
//
// Over: the model and the voice are stopped, and charged: the model for the tokens that it has written, the voice for the samples that were
// sent. Then each open item ends once, the message first, and `response.done` is the last event. What happens afterwards changes nothing.
//
// How it ends decides what is kept of a spoken message. `completed`, and `incomplete` for its length: all words. `cancelled`: the words that
// were played by now; where the user's speech cut it, the client plays no more, and without that a later truncation tells how much more
// was played. `failed`: the words of the audio that was sent. Text that is not spoken is kept as far as it was sent. A call that is cut
// short stays in the history as `incomplete`, and its arguments never end.
import { samplesToMs, secondsToSamples, speechRateHz } from "../audio/Audio.ts"
import type { SpokenWord } from "../audio/TimedWords.ts"
import {
  type AnswerCounts,
  answerUsage,
  noCounts,
  type ResponseObject,
  type ResponseStatus,
  type StatusDetails,
} from "./Answers.ts"
import { Clauses } from "./Clauses.ts"
import { answerItem, callItem, type Item } from "./Items.ts"
import type { ConversationEvent } from "./ServerEvents.ts"
import { type Caption, SpokenText } from "./SpokenText.ts"

/** Audio that is sent ahead of what has been played, milliseconds. A guess: longer than the pauses of most networks. */
export const leadMs = 1_000

/** Audio of one event, samples: 100 ms. */
export const eventSamples = speechRateHz / 10

/** Audio that may wait to be sent before the next piece is synthesised. Speech is made several times faster than it is played. */
export const mostWaiting = secondsToSamples(4, speechRateHz)

export interface AnswerTerms {
  readonly id: string
  /** The id of its message, if it has one. */
  readonly messageId: string
  /** It joins no history. */
  readonly isBeside: boolean
  readonly speaks: boolean
  /** Audio is sent at the pace at which it is played. */
  readonly isPaced: boolean
  /** It waits for its release. */
  readonly isHeld: boolean
  /** What all its response objects say. */
  readonly about: Omit<ResponseObject, "object" | "id" | "status" | "status_details" | "output" | "usage">
}

/** What is known of the audio of the conversation at the moment of the event. Samples count from its beginning. */
export interface AnswerFacts {
  readonly nowMs: number
  readonly sentSamples: number
  readonly playedSamples: number
  /** When all that was sent will have been played. */
  readonly playedUntilMs: number
}

/** What the model writes, in its order. */
export type Written =
  | { readonly is: "text"; readonly text: string }
  | {
      readonly is: "call"
      readonly call: number
      readonly name: string
      /** Of its item, and of the call itself. */
      readonly id: string
      readonly callId: string
    }
  | { readonly is: "arguments"; readonly call: number; readonly text: string }

export type AnswerError = Extract<StatusDetails, { readonly type: "failed" }>["error"]

export type AnswerEvent =
  /** The first event. */
  | { readonly is: "began" }
  | { readonly is: "released" }
  /** The model has read what it answers. */
  | { readonly is: "prompt read"; readonly counts: Omit<AnswerCounts, "audioMs" | "outputTokens"> }
  /** `written`: undefined for tokens that are no part of the answer. */
  | { readonly is: "wrote"; readonly written: Written | undefined; readonly outputTokens: number }
  /** The model has written everything, or as much as it may. */
  | { readonly is: "all written"; readonly outputTokens: number; readonly isCut: boolean }
  /** The next audio of the piece that is being spoken, and the words that begin with it; their samples count from the piece's first. */
  | { readonly is: "sounded"; readonly samples: Int16Array; readonly words: ReadonlyArray<SpokenWord> }
  /** All audio of the piece was made; it may have none. */
  | { readonly is: "piece spoken" }
  | { readonly is: "voice failed"; readonly error: AnswerError }
  | { readonly is: "failed"; readonly error: AnswerError }
  /** All that was to be sent has been written, after `call`. */
  | { readonly is: "free" }
  /** The time that was awaited has come. */
  | { readonly is: "due" }
  /** What is left goes out without waiting for its time. */
  | { readonly is: "hurry" }
  | { readonly is: "cancel"; readonly reason: "turn_detected" | "client_cancelled" }
  | { readonly is: "discard" }

type WithoutId<E> = E extends { readonly event_id: string } ? Omit<E, "event_id"> : never
type Wire = WithoutId<typeof ConversationEvent.Type>
/** An event of the protocol. */
export type AnswerMessage = Extract<Wire, { readonly type: `response.${string}` }>

/** The audio of a message, in an event `response.output_audio.delta`. */
export interface AudioPart {
  readonly response_id: string
  readonly item_id: string
  readonly output_index: number
  readonly content_index: number
}

export type AnswerCommand =
  | { readonly do: "send"; readonly message: AnswerMessage }
  /** Charged when it is sent; what a cut has overtaken is neither. */
  | {
      readonly do: "send audio"
      readonly piece: number
      readonly part: AudioPart
      readonly samples: Int16Array
    }
  /** Once all before is written the socket is `free`: audio is decided only then, so that none waits behind a cut. */
  | { readonly do: "call" }
  /** The item joins the history at its end, and `conversation.item.added` says so. */
  | { readonly do: "join"; readonly item: Item; readonly spoken: SpokenText | undefined }
  /** The item of the history is this now, and `conversation.item.done` says so. */
  | { readonly do: "complete"; readonly item: Item; readonly spoken: SpokenText | undefined }
  /** For those who count turns: the message that joins the history is spoken. */
  | { readonly do: "message began"; readonly itemId: string }
  /** Speaks a piece of text, after the one before it. */
  | { readonly do: "speak"; readonly piece: number; readonly text: string }
  /** This audio is sent now, by the next command: the client plays it. */
  | { readonly do: "play"; readonly samples: Int16Array }
  | { readonly do: "await"; readonly ms: number }
  | { readonly do: "pause model" }
  | { readonly do: "resume model" }
  /** The client plays nothing of what was sent from now on. */
  | { readonly do: "play no more" }
  /** Ends the model and the voice, and charges what they have done where that `isCharged`. */
  | { readonly do: "stop" }
  /** For the node's meters, traces and load. */
  | { readonly do: "account"; readonly status: ResponseStatus; readonly counts: AnswerCounts }
  /** The last command. */
  | { readonly do: "end" }

interface Chunk {
  readonly samples: Int16Array
  readonly words: ReadonlyArray<SpokenWord>
}

interface Piece {
  readonly number: number
  readonly text: string
  readonly chunks: ReadonlyArray<Chunk>
  readonly hasBegun: boolean
  /** `broken`: the voice has failed in it. */
  readonly made: "not yet" | "whole" | "broken"
}

interface Message {
  readonly id: string
  readonly index: number
  /** Written so far. */
  readonly text: string
  /** What was sent of its speech. */
  readonly spoken: SpokenText
}

interface Call {
  readonly call: number
  readonly id: string
  readonly index: number
  readonly callId: string
  readonly name: string
  readonly arguments: string
}

export interface AnswerState {
  readonly terms: AnswerTerms
  readonly life: "held" | "given" | "over"
  /** It is given, or was before it was over. */
  readonly isReleased: boolean
  readonly counts: Omit<AnswerCounts, "audioMs">
  readonly hasText: boolean
  /** Written while it was held. */
  readonly unsent: ReadonlyArray<Written>
  /** How the model has ended. */
  readonly written: "whole" | "cut" | undefined
  readonly model: "runs" | "paused" | "resumed"
  /** Its items, as the client knows them. */
  readonly output: ReadonlyArray<Item>
  readonly message: Message | undefined
  /** Calls that are open. */
  readonly calls: ReadonlyArray<Call>
  readonly clauses: Clauses
  /** Pieces of text that are not spoken yet. */
  readonly texts: ReadonlyArray<string>
  /** Pieces of which audio is to be sent, the last one perhaps in the making. */
  readonly pieces: ReadonlyArray<Piece>
  readonly isSpeaking: boolean
  readonly nextPiece: number
  /** Audio that waits to be sent. */
  readonly waitingSamples: number
  /** It says when the socket is free. */
  readonly isCalled: boolean
  readonly isPaced: boolean
  /** The next audio waits for its time. */
  readonly isAwaiting: boolean
  /** Why no more is spoken. */
  readonly failure: AnswerError | undefined
}

export const unbegun = (terms: AnswerTerms): AnswerState => ({
  terms,
  life: terms.isHeld ? "held" : "given",
  isReleased: !terms.isHeld,
  counts: noCounts,
  hasText: false,
  unsent: [],
  written: undefined,
  model: "runs",
  output: [],
  message: undefined,
  calls: [],
  clauses: new Clauses(),
  texts: [],
  pieces: [],
  isSpeaking: false,
  nextPiece: 0,
  waitingSamples: 0,
  isCalled: false,
  isPaced: terms.isPaced,
  isAwaiting: false,
  failure: undefined,
})

/** Whether it is being written, all is written and speech is to be sent, or it is over. */
export const phaseOf = ({ life, written }: AnswerState): "writing" | "draining" | "over" =>
  life === "over" ? "over" : life === "given" && written !== undefined ? "draining" : "writing"

/** Whether the model's tokens are charged where the answer was prepared: only of one that was released. Asked when the model is stopped. */
export const isCharged = ({ counts, isReleased }: AnswerState): boolean =>
  isReleased && counts.outputTokens > 0

class Decision {
  state: AnswerState
  readonly commands: Array<AnswerCommand> = []
  readonly #facts: AnswerFacts

  constructor(state: AnswerState, facts: AnswerFacts) {
    this.state = state
    this.#facts = facts
  }

  event(event: AnswerEvent): void {
    if (this.state.life === "over") return
    switch (event.is) {
      case "began":
        if (this.state.life === "given") this.#tellCreated()
        return
      case "released":
        return this.#released()
      case "prompt read":
        return this.#become({ counts: { ...this.state.counts, ...event.counts } })
      case "wrote":
        this.#counted(event.outputTokens)
        if (event.written !== undefined) this.#wrote(event.written)
        return
      case "all written":
        this.#counted(event.outputTokens)
        return this.#allWritten(event.isCut)
      case "sounded":
        return this.#sounded(event)
      case "piece spoken":
        this.#pieceMade("whole")
        return this.#goOn()
      case "voice failed":
        return this.#voiceFailed(event.error)
      case "failed":
        return this.#end("failed", { type: "failed", error: event.error })
      case "free":
        this.#become({ isCalled: false })
        this.#sendNext()
        return this.#goOn()
      case "due":
        this.#become({ isAwaiting: false })
        return this.#goOn()
      case "hurry":
        this.#become({ isPaced: false, isAwaiting: false })
        return this.#goOn()
      case "cancel":
        return this.#end("cancelled", { type: "cancelled", reason: event.reason })
      case "discard":
        return this.#end("cancelled", { type: "cancelled", reason: "client_cancelled" })
    }
  }

  #become(changes: Partial<AnswerState>): void {
    this.state = { ...this.state, ...changes }
  }

  #do(command: AnswerCommand): void {
    this.commands.push(command)
  }

  #send(message: AnswerMessage): void {
    this.#do({ do: "send", message })
  }

  #tellCreated(): void {
    this.#send({ type: "response.created", response: this.#object("in_progress", null) })
  }

  #released(): void {
    if (this.state.life === "given") return
    const { unsent } = this.state
    this.#become({ life: "given", isReleased: true, unsent: [] })
    this.#tellCreated()
    for (const written of unsent) this.#take(written)
    if (this.state.written !== undefined) this.#endCalls()
    this.#goOn()
  }

  // ------------------------------------------------------------ what the model writes

  #counted(outputTokens: number): void {
    this.#become({ counts: { ...this.state.counts, outputTokens } })
  }

  #wrote(written: Written): void {
    if (written.is === "text") {
      // White space before a call is no answer.
      if (!this.state.hasText && written.text.trim() === "") return
      this.#become({ hasText: true })
      this.#cutIntoPieces(written.text)
    }
    if (this.state.life === "held") this.#become({ unsent: [...this.state.unsent, written] })
    else this.#take(written)
    this.#goOn()
  }

  #cutIntoPieces(text: string): void {
    if (!this.state.terms.speaks || this.state.failure !== undefined) return
    const { clauses, pieces } = this.state.clauses.push(text)
    this.#become({ clauses })
    if (pieces.length === 0) return
    this.#become({ texts: [...this.state.texts, ...pieces] })
    // The model would only slow the voice down, on the same processor, while its first clause is waited for.
    if (this.state.model !== "runs") return
    this.#become({ model: "paused" })
    this.#do({ do: "pause model" })
  }

  #take(written: Written): void {
    switch (written.is) {
      case "text": {
        const message = this.state.message ?? this.#beginMessage()
        this.#become({ message: { ...message, text: message.text + written.text } })
        if (!this.state.terms.speaks)
          this.#send({ type: "response.output_text.delta", ...this.#part(message), delta: written.text })
        return
      }
      case "call":
        return this.#beginCall(written)
      case "arguments": {
        const call = this.state.calls.find((one) => one.call === written.call)
        if (call === undefined || written.text === "") return
        const longer = { ...call, arguments: call.arguments + written.text }
        this.#become({ calls: this.state.calls.map((one) => (one === call ? longer : one)) })
        const { callId: call_id } = call
        const about = { ...this.#about(call), call_id }
        return this.#send({ type: "response.function_call_arguments.delta", ...about, delta: written.text })
      }
    }
  }

  #beginMessage(): Message {
    const { messageId: id, isBeside, speaks } = this.state.terms
    const index = this.state.output.length
    // Nothing else of the conversation is sent before it has been spoken.
    const message = { id, index, text: "", spoken: new SpokenText(this.#facts.sentSamples) }
    this.#become({ message })
    if (speaks && !isBeside) this.#do({ do: "message began", itemId: id })
    this.#addItem(index, answerItem(id, "in_progress", []), speaks ? message.spoken : undefined)
    const part = speaks ? ({ type: "audio", transcript: "" } as const) : ({ type: "text", text: "" } as const)
    this.#send({ type: "response.content_part.added", ...this.#part(message), part })
    return message
  }

  #beginCall({ call, callId, id, name }: Extract<Written, { readonly is: "call" }>): void {
    const begun: Call = { call, id, index: this.state.output.length, callId, name, arguments: "" }
    this.#become({ calls: [...this.state.calls, begun] })
    this.#addItem(begun.index, callItem(id, "in_progress", begun), undefined)
  }

  #allWritten(isCut: boolean): void {
    const { clauses, failure, terms, texts } = this.state
    const hasRest = terms.speaks && failure === undefined && clauses.rest.trim() !== ""
    this.#become({
      written: isCut ? "cut" : "whole",
      clauses: new Clauses(),
      texts: hasRest ? [...texts, clauses.rest] : texts,
    })
    this.#endCalls()
    this.#goOn()
  }

  /** The calls that are open are complete. */
  #endCalls(): void {
    const { calls } = this.state
    this.#become({ calls: [] })
    for (const call of calls) {
      // Clients parse the arguments as JSON.
      const args = call.arguments.trim() === "" ? "{}" : call.arguments
      const { callId: call_id, name } = call
      const about = { ...this.#about(call), call_id, name }
      this.#send({ type: "response.function_call_arguments.done", ...about, arguments: args })
      this.#endItem(call.index, callItem(call.id, "completed", { ...call, arguments: args }), undefined)
    }
  }

  // ------------------------------------------------------------ what is spoken

  #sounded({ samples, words }: Chunk): void {
    this.#resumeModel()
    const piece = this.state.pieces.at(-1)
    if (piece === undefined || !this.state.isSpeaking) return
    const longer = { ...piece, chunks: [...piece.chunks, { samples, words }] }
    this.#become({
      pieces: this.state.pieces.with(-1, longer),
      waitingSamples: this.state.waitingSamples + samples.length,
    })
    this.#goOn()
  }

  #pieceMade(made: "whole" | "broken"): void {
    this.#resumeModel()
    const { isSpeaking, pieces } = this.state
    if (!isSpeaking) return
    this.#become({ isSpeaking: false, pieces: pieces.with(-1, { ...pieces.at(-1)!, made }) })
  }

  #resumeModel(): void {
    if (this.state.model !== "paused") return
    this.#become({ model: "resumed" })
    this.#do({ do: "resume model" })
  }

  /** What was made before is sent first, where anything of the answer is. */
  #voiceFailed(error: AnswerError): void {
    if (this.state.message === undefined) return this.#end("failed", { type: "failed", error })
    this.#pieceMade("broken")
    this.#become({ failure: error, texts: [] })
    this.#goOn()
  }

  /** Speaks what may be spoken now, asks for the socket where there is something to send, and ends where nothing is left. */
  #goOn(): void {
    this.#speakNext()
    this.#call()
    const { failure, life, pieces, texts, written } = this.state
    if (life !== "given" || pieces.length > 0 || texts.length > 0) return
    if (failure !== undefined) return this.#end("failed", { type: "failed", error: failure })
    if (written === "whole") return this.#end("completed", null)
    if (written === "cut") this.#end("incomplete", { type: "incomplete", reason: "max_output_tokens" })
  }

  #speakNext(): void {
    const { failure, isSpeaking, message, nextPiece, pieces, texts, waitingSamples } = this.state
    const [text, ...others] = texts
    if (text === undefined || isSpeaking || failure !== undefined) return
    // While it is held, only the first piece is spoken.
    if (message === undefined ? nextPiece > 0 : waitingSamples > mostWaiting) return
    const piece = { number: nextPiece, text, chunks: [], hasBegun: false, made: "not yet" } as const
    this.#become({ texts: others, pieces: [...pieces, piece], nextPiece: nextPiece + 1, isSpeaking: true })
    this.#do({ do: "speak", piece: piece.number, text })
  }

  #call(): void {
    const { isAwaiting, isCalled, message, pieces } = this.state
    const [piece] = pieces
    const hasNext = piece !== undefined && (piece.chunks.length > 0 || piece.made !== "not yet")
    if (message === undefined || !hasNext || isAwaiting || isCalled) return
    this.#become({ isCalled: true })
    this.#do({ do: "call" })
  }

  /** Sends the next audio, if it is due, and what ends before it. */
  #sendNext(): void {
    for (;;) {
      const { message, pieces } = this.state
      const [piece, ...others] = pieces
      if (message === undefined || piece === undefined) return
      const [chunk] = piece.chunks
      if (chunk !== undefined) return this.#sendDue(message, piece, chunk)
      if (piece.made === "not yet") return
      this.#become({ pieces: others })
      this.#endPiece(message, piece)
    }
  }

  /** All audio of the piece has been sent. */
  #endPiece(message: Message, { hasBegun, made, text }: Piece): void {
    if (made === "broken") {
      if (hasBegun) this.#become({ message: { ...message, spoken: message.spoken.broken() } })
      return
    }
    // A piece in which there is nothing to pronounce has no audio.
    const begun = hasBegun ? message.spoken : message.spoken.begin(text)
    const { captions, spoken } = begun.rest()
    this.#become({ message: { ...message, spoken } })
    this.#tellCaptions(message, captions)
  }

  #sendDue(message: Message, piece: Piece, chunk: Chunk): void {
    const { isPaced, waitingSamples } = this.state
    const ms = isPaced ? this.#facts.playedUntilMs - leadMs - this.#facts.nowMs : 0
    if (ms > 0) {
      this.#become({ isAwaiting: true })
      return this.#do({ do: "await", ms })
    }
    const samples = chunk.samples.subarray(0, eventSamples)
    const left = chunk.samples.subarray(eventSamples)
    const [, ...later] = piece.chunks
    const chunks = left.length === 0 ? later : [{ samples: left, words: [] }, ...later]
    const begun = piece.hasBegun ? message.spoken : message.spoken.begin(piece.text)
    const { captions, spoken } = begun.add(samples.length, chunk.words)
    this.#become({
      pieces: this.state.pieces.with(0, { ...piece, chunks, hasBegun: true }),
      waitingSamples: waitingSamples - samples.length,
      message: { ...message, spoken },
    })
    this.#do({ do: "play", samples })
    this.#tellCaptions(message, captions)
    this.#do({ do: "send audio", piece: piece.number, part: this.#part(message), samples })
  }

  #tellCaptions(message: Message, captions: ReadonlyArray<Caption>): void {
    for (const { start, text } of captions)
      this.#send({
        type: "response.output_audio_transcript.delta",
        ...this.#part(message),
        delta: text,
        start_time: samplesToMs(start, speechRateHz) / 1000,
      })
  }

  // ------------------------------------------------------------ items

  #about({ id, index }: { readonly id: string; readonly index: number }) {
    return { response_id: this.state.terms.id, item_id: id, output_index: index }
  }

  #part(message: Message): AudioPart {
    return { ...this.#about(message), content_index: 0 }
  }

  #addItem(index: number, item: Item, spoken: SpokenText | undefined): void {
    const { id, isBeside } = this.state.terms
    this.#become({ output: [...this.state.output, item] })
    this.#send({ type: "response.output_item.added", response_id: id, output_index: index, item })
    if (!isBeside) this.#do({ do: "join", item, spoken })
  }

  #endItem(index: number, item: Item, spoken: SpokenText | undefined): void {
    const { id, isBeside } = this.state.terms
    this.#become({ output: this.state.output.with(index, item) })
    if (!isBeside) this.#do({ do: "complete", item, spoken })
    this.#send({ type: "response.output_item.done", response_id: id, output_index: index, item })
  }

  #endMessage(message: Message, status: ResponseStatus): void {
    const { speaks } = this.state.terms
    const itemStatus = status === "completed" ? "completed" : "incomplete"
    const part = this.#part(message)
    if (!speaks) {
      const { id, index, text } = message
      this.#send({ type: "response.output_text.done", ...part, text })
      this.#send({ type: "response.content_part.done", ...part, part: { type: "text", text } })
      return this.#endItem(index, answerItem(id, itemStatus, [{ type: "output_text", text }]), undefined)
    }
    const [piece] = this.state.pieces
    const unsent = piece?.chunks.reduce((sum, { samples }) => sum + samples.length, 0)
    const spoken = piece?.hasBegun === true ? message.spoken.broken(unsent) : message.spoken
    const played = this.#facts.playedSamples - spoken.startsAt
    const transcript = spoken.heard(status === "cancelled" ? played : spoken.samples)
    this.#send({ type: "response.output_audio.done", ...part })
    this.#send({ type: "response.output_audio_transcript.done", ...part, transcript })
    this.#send({ type: "response.content_part.done", ...part, part: { type: "audio", transcript } })
    const content = [{ type: "output_audio" as const, transcript }]
    this.#endItem(message.index, answerItem(message.id, itemStatus, content), spoken)
  }

  // ------------------------------------------------------------ the end

  #end(status: Exclude<ResponseStatus, "in_progress">, details: StatusDetails | null): void {
    const { calls, life, message } = this.state
    this.#do({ do: "stop" })
    if (life === "given") {
      if (details?.type === "cancelled" && details.reason === "turn_detected")
        this.#do({ do: "play no more" })
      if (message !== undefined) this.#endMessage(message, status)
      for (const call of calls) this.#endItem(call.index, callItem(call.id, "incomplete", call), undefined)
      this.#send({ type: "response.done", response: this.#object(status, details) })
      this.#do({ do: "account", status, counts: this.#counts })
    }
    this.#do({ do: "end" })
    // What it held is not needed any more.
    const { counts, isReleased, output, terms } = this.state
    this.state = { ...unbegun(terms), life: "over", isReleased, counts, output }
  }

  get #counts(): AnswerCounts {
    const audioMs = samplesToMs(this.state.message?.spoken.samples ?? 0, speechRateHz)
    return { ...this.state.counts, audioMs }
  }

  #object(status: ResponseStatus, details: StatusDetails | null): ResponseObject {
    const { output, terms } = this.state
    return {
      object: "realtime.response",
      id: terms.id,
      status,
      status_details: details,
      output,
      ...terms.about,
      usage: status === "in_progress" ? null : answerUsage(this.#counts),
    }
  }
}

/** What is known after an event, and what is to be done, in this order. */
export const decide = (
  state: AnswerState,
  event: AnswerEvent,
  facts: AnswerFacts,
): readonly [AnswerState, ReadonlyArray<AnswerCommand>] => {
  const decision = new Decision(state, facts)
  decision.event(event)
  return [decision.state, decision.commands]
}
