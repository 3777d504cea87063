// Removes a thinking block from the beginning of a reply, for chat models whose template has one. The prompt switches
// thinking off; this filter handles models that think nevertheless. A marker later in the reply is part of the
// answer and stays.

export interface ThoughtMarkers {
  readonly open: string
  readonly close: string
  /** True if the prompt has opened the block already, so that the reply begins inside it. */
  readonly startsInside: boolean
}

export class ThoughtFilter {
  readonly #markers: ThoughtMarkers
  #state: "undecided" | "inside" | "after" | "answer"
  #held = ""

  constructor(markers: ThoughtMarkers) {
    this.#markers = markers
    this.#state = markers.startsInside ? "inside" : "undecided"
  }

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
        // Keep only what could be the beginning of the closing marker.
        this.#held = this.#held.slice(Math.max(0, this.#held.length - this.#markers.close.length + 1))
        return ""
      }
      this.#held = this.#held.slice(at + this.#markers.close.length)
      this.#state = "after"
    }
    const answer = this.#held.trimStart()
    return answer === "" ? this.#hold("") : this.#answer(answer)
  }

  /** Ends the text. What looked like the beginning of an opening marker is text; an unclosed block is dropped. */
  flush(): string {
    const held = this.#state === "undecided" ? this.#held : ""
    this.#held = ""
    return held
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
