// Separates a thinking block at the beginning of a reply from the answer, for chat models whose template has one. Its text is
// dropped unless the request asked for it; models think sometimes though their prompt switches it off. A marker later in
// the reply is part of the answer and stays.

export interface ThoughtMarkers {
  readonly open: string
  readonly close: string
  /** True if the prompt has opened the block already, so that the reply begins inside it. */
  readonly startsInside: boolean
}

/** How many of the last units of `text` could be the beginning of `marker`. */
const beginningAtEnd = (text: string, marker: string): number => {
  for (let length = Math.min(text.length, marker.length - 1); length > 0; length--)
    if (text.endsWith(marker.slice(0, length))) return length
  return 0
}

export class ThoughtFilter {
  readonly #markers: ThoughtMarkers
  readonly #keeps: boolean
  #state: "undecided" | "inside" | "after" | "answer"
  #held = ""
  /** The block's text since the last `takeReasoning`. */
  #reasoning = ""
  #hasReasoning = false

  /** `keeps`: the block's text is kept for `takeReasoning`. */
  constructor(markers: ThoughtMarkers, keeps = false) {
    this.#markers = markers
    this.#keeps = keeps
    this.#state = markers.startsInside ? "inside" : "undecided"
  }

  /** True while the reply is inside the block. */
  get inside(): boolean {
    return this.#state === "inside"
  }

  /** Adds text and returns that of the answer. */
  push(text: string): string {
    if (this.#state === "answer") return text
    this.#held += text
    if (this.#state === "undecided") {
      const begun = this.#held.trimStart()
      if (begun.startsWith(this.#markers.open)) {
        this.#held = begun.slice(this.#markers.open.length)
        this.#state = "inside"
      } else if (this.#markers.open.startsWith(begun)) {
        return ""
      } else {
        return this.#answer(this.#held)
      }
    }
    if (this.#state === "inside") {
      const at = this.#held.indexOf(this.#markers.close)
      if (at < 0) {
        this.#think()
        return ""
      }
      this.#reason(this.#held.slice(0, at).trimEnd())
      this.#held = this.#held.slice(at + this.#markers.close.length)
      this.#state = "after"
    }
    const answer = this.#held.trimStart()
    return answer === "" ? this.#hold("") : this.#answer(answer)
  }

  /** The block's text that was added since the last call, without white space at its beginning and end. */
  takeReasoning(): string {
    const reasoning = this.#reasoning
    this.#reasoning = ""
    return reasoning
  }

  /**
   * Ends the text and returns what belongs to the answer. What looked like the beginning of an opening marker is answer; what
   * looked like that of a closing one is not.
   */
  flush(): string {
    const held = this.#state === "undecided" ? this.#held : ""
    if (this.#state === "inside") this.#reason(this.#held.trimEnd())
    this.#held = ""
    return held
  }

  /** Holds back what could be the beginning of the closing marker, and white space before it, which could be the block's end. */
  #think(): void {
    const begun = this.#held.slice(0, this.#held.length - beginningAtEnd(this.#held, this.#markers.close))
    const certain = begun.trimEnd().length
    this.#reason(this.#held.slice(0, certain))
    this.#held = this.#held.slice(certain)
  }

  #reason(text: string): void {
    if (!this.#keeps) return
    const added = this.#hasReasoning ? text : text.trimStart()
    this.#hasReasoning ||= added !== ""
    this.#reasoning += added
  }

  #hold(text: string): string {
    this.#held = text
    return ""
  }

  #answer(text: string): string {
    this.#state = "answer"
    this.#held = ""
    return text
  }
}
