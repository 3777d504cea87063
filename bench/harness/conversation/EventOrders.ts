// The rules of order of a realtime server's events: every answer, item and part begins once, ends once, and nothing of it comes
// after its end; every ended answer has a usage. Broken rules are counted. Pure.
type Event = Readonly<Record<string, unknown>>

const objectIn = (value: unknown): Event =>
  typeof value === "object" && value !== null ? (value as Event) : {}

/** Broken rules that are kept as texts. */
const mostKept = 20
/** Ids whose state is kept; the oldest are forgotten. */
const mostIds = 10_000

type State = "open" | "ended"

export class EventOrders {
  /** The first ones, as sentences. */
  readonly broken: Array<string> = []
  count = 0
  readonly #states = new Map<string, State>()
  #hasSession = false
  #isSpeaking = false

  #break(type: string, rule: string): void {
    this.count++
    if (this.broken.length < mostKept) this.broken.push(`${type}: ${rule}`)
  }

  #set(key: string, state: State): void {
    this.#states.set(key, state)
    if (this.#states.size > mostIds) this.#states.delete(this.#states.keys().next().value!)
  }

  #begin(type: string, key: string): void {
    if (this.#states.has(key)) this.#break(type, "begins twice")
    this.#set(key, "open")
  }

  #end(type: string, key: string): void {
    const state = this.#states.get(key)
    if (state !== "open") this.#break(type, state === undefined ? "ends without a beginning" : "ends twice")
    this.#set(key, "ended")
  }

  #within(type: string, key: string): void {
    const state = this.#states.get(key)
    if (state !== "open")
      this.#break(type, state === undefined ? "is of nothing that began" : "comes after the end")
  }

  see(event: Event): void {
    const type = String(event.type)
    if (!this.#hasSession) {
      this.#hasSession = true
      if (type !== "session.created") this.#break(type, "comes before session.created")
    }
    if (type.startsWith("input_audio_buffer.")) return this.#input(type, event)
    if (type.startsWith("conversation.item.")) return this.#item(type, event)
    if (type.startsWith("response.")) this.#response(type, event)
  }

  #input(type: string, event: Event): void {
    switch (type.slice("input_audio_buffer.".length)) {
      case "speech_started":
        if (this.#isSpeaking) this.#break(type, "comes twice")
        this.#isSpeaking = true
        return
      case "speech_stopped":
        if (!this.#isSpeaking) this.#break(type, "comes without speech_started")
        this.#isSpeaking = false
        return
      case "committed":
        return this.#begin(type, `turn ${String(event.item_id)}`)
    }
  }

  #item(type: string, event: Event): void {
    const rest = type.slice("conversation.item.".length)
    if (rest === "added") this.#begin(type, `item ${String(objectIn(event.item).id)}`)
    else if (rest === "done") this.#end(type, `item ${String(objectIn(event.item).id)}`)
    else if (rest === "input_audio_transcription.completed" || rest === "input_audio_transcription.failed")
      this.#end(type, `turn ${String(event.item_id)}`)
  }

  #response(type: string, event: Event): void {
    const rest = type.slice("response.".length)
    if (rest === "created" || rest === "done") {
      const response = objectIn(event.response)
      const key = `answer ${String(response.id)}`
      if (rest === "created") return this.#begin(type, key)
      this.#end(type, key)
      const usage = objectIn(response.usage)
      if (!("input_token_details" in usage && "output_token_details" in usage))
        this.#break(type, "has no usage")
      return
    }
    this.#within(type, `answer ${String(event.response_id)}`)
    const item = `output ${String(event.item_id ?? objectIn(event.item).id)}`
    const part = `${item} ${String(event.content_index)}`
    switch (rest) {
      case "output_item.added":
        return this.#begin(type, item)
      case "output_item.done":
        return this.#end(type, item)
      case "content_part.added":
        this.#begin(type, part)
        return this.#set(`${part} audio`, "open")
      case "content_part.done":
        return this.#end(type, part)
      case "output_audio.done":
        return this.#end(type, `${part} audio`)
      case "output_audio.delta":
        return this.#within(type, `${part} audio`)
      case "output_audio_transcript.delta":
      case "output_text.delta":
        return this.#within(type, part)
    }
  }
}
