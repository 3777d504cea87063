// What `edgewise talk` prints of a conversation's events: who speaks, captions, and for each answer the times from the end of the
// user's turn. Pure.
import { visible, visibleJson } from "../shared/Output.ts"

/** Milliseconds from the end of the turn: `speech_stopped`, or the client's commit. */
interface Ledger {
  readonly transcript_ms?: number
  readonly answer_ms?: number
  readonly text_ms?: number
  readonly audio_ms?: number
  /** From the last sample of the user's speech to the first audible sample of the answer; known of files only. */
  readonly voice_to_voice_ms?: number
}

type Event = Readonly<Record<string, unknown>>

const textOf = (value: unknown): string => (typeof value === "string" ? value : "")
const fieldsIn = (value: unknown): Event =>
  typeof value === "object" && value !== null ? (value as Event) : {}

const names: ReadonlyArray<readonly [keyof Ledger, string]> = [
  ["transcript_ms", "transcript"],
  ["answer_ms", "answer"],
  ["text_ms", "text"],
  ["audio_ms", "audio"],
]

/** `transcript 31 ms, answer 31 ms, text 33 ms, audio 52 ms after the turn; voice to voice 560 ms` */
const ledgerLine = (ledger: Ledger): string => {
  const parts = names.flatMap(([name, label]) => {
    const ms = ledger[name]
    return ms === undefined ? [] : [`${label} ${Math.round(ms)} ms`]
  })
  const { voice_to_voice_ms } = ledger
  const after = parts.length === 0 ? "" : `${parts.join(", ")} after the turn`
  if (voice_to_voice_ms === undefined) return after
  return `${after === "" ? "" : `${after}; `}voice to voice ${Math.round(voice_to_voice_ms)} ms`
}

const steps: ReadonlyArray<readonly [string, string]> = [
  ["silence_ms", "silence"],
  ["transcript_ms", "transcript"],
  ["first_token_ms", "first token"],
  ["first_clause_ms", "first clause"],
  ["first_samples_ms", "first samples"],
  ["first_sent_ms", "sent"],
]

/** `on the node: silence 500 ms, transcript 9 ms, first token 2 ms, …; prepared in the silence` (protocol 19.3) */
const latencyLine = (event: Event): string => {
  const parts = steps.flatMap(([name, label]) => {
    const ms = event[name]
    return typeof ms === "number" ? [`${label} ${Math.round(ms)} ms`] : []
  })
  return `on the node: ${parts.join(", ")}${event.prepared === true ? "; prepared in the silence" : ""}`
}

const latencyDocument = (event: Event): object => ({
  type: "latency",
  ...Object.fromEntries(steps.map(([name]) => [name, event[name] ?? null])),
  prepared: event.prepared === true,
})

const indent = 8

export class TalkLines {
  readonly #write: (text: string) => void
  readonly #json: boolean
  #turnEndedMs: number | undefined
  #ledger: { -readonly [name in keyof Ledger]: Ledger[name] } = {}
  #answer = ""
  #isOpen = false

  constructor(write: (text: string) => void, json: boolean) {
    this.#write = write
    this.#json = json
  }

  /** The client ended the turn. */
  committed(atMs: number): void {
    this.#turnEndedMs = atMs
    this.#ledger = {}
  }

  see(event: Event, atMs: number): void {
    switch (textOf(event.type)) {
      case "input_audio_buffer.speech_started":
        return this.#line("you", "…", { type: "speech_started" })
      case "input_audio_buffer.speech_stopped":
        return this.committed(atMs)
      case "conversation.item.input_audio_transcription.completed": {
        this.#mark("transcript_ms", atMs)
        const text = textOf(event.transcript).trim()
        return this.#line("you", text === "" ? "(nothing was understood)" : text, { type: "user", text })
      }
      case "response.created":
        this.#answer = ""
        return this.#mark("answer_ms", atMs)
      case "response.output_audio_transcript.delta":
      case "response.output_text.delta":
        this.#mark("text_ms", atMs)
        return this.#caption(textOf(event.delta))
      case "response.output_audio.delta":
        return this.#mark("audio_ms", atMs)
      case "response.latency":
        return this.#line("", latencyLine(event), latencyDocument(event))
      case "response.done":
        return this.#done(fieldsIn(event.response))
    }
  }

  #mark(name: keyof Ledger, atMs: number): void {
    if (this.#turnEndedMs !== undefined) this.#ledger[name] ??= Math.max(0, atMs - this.#turnEndedMs)
  }

  #caption(text: string): void {
    this.#answer += text
    if (this.#json) return
    if (!this.#isOpen) this.#write("answer".padEnd(indent))
    this.#isOpen = true
    this.#write(visible(text))
  }

  #done(response: Event): void {
    const status = textOf(response.status)
    const details = fieldsIn(response.status_details)
    const why = textOf(fieldsIn(details.error).message) || textOf(details.reason)
    if (this.#json) {
      const ledger = Object.fromEntries(
        Object.entries(this.#ledger).map(([name, ms]) => [name, Math.round(ms)]),
      )
      return this.#write(
        `${visibleJson({ type: "answer", text: this.#answer, status, ...(why === "" ? {} : { reason: why }), ledger })}\n`,
      )
    }
    if (status !== "completed") this.#line("", `(${visible(why === "" ? status : `${status}: ${why}`)})`, {})
    const times = ledgerLine(this.#ledger)
    if (times !== "") this.#line("", times, {})
  }

  /** What is known of an answer only after it was heard. */
  heard(voiceToVoiceMs: number | undefined): void {
    if (voiceToVoiceMs === undefined) return
    const ms = Math.round(voiceToVoiceMs)
    this.#line("", `voice to voice ${ms} ms`, { type: "heard", voice_to_voice_ms: ms })
  }

  #line(who: string, text: string, document: object): void {
    if (this.#json) return "type" in document ? this.#write(`${visibleJson(document)}\n`) : undefined
    this.#write(`${this.#isOpen ? "\n" : ""}${who.padEnd(indent)}${visible(text)}\n`)
    this.#isOpen = false
  }
}
