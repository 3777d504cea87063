// Where a JSON value ends whose text arrives in pieces.
import type { ArgumentsReader } from "./CallParser.ts"

/** Finds the end of a JSON object or array whose text arrives in pieces. */
export class JsonEnd {
  #depth = 0
  #inString = false
  #escaped = false

  /** How many characters of the text belong to the value, and whether it ends there. */
  scan(text: string): { readonly to: number; readonly ended: boolean } {
    for (let at = 0; at < text.length; at++) {
      const code = text.charCodeAt(at)
      if (this.#inString) {
        if (this.#escaped) this.#escaped = false
        else if (code === 92) this.#escaped = true
        else if (code === 34) this.#inString = false
      } else if (code === 34) this.#inString = true
      else if (code === 123 || code === 91) this.#depth++
      else if ((code === 125 || code === 93) && --this.#depth <= 0) return { to: at + 1, ended: true }
    }
    return { to: text.length, ended: false }
  }

  /** Nesting after what was scanned. */
  get depth(): number {
    return this.#depth
  }

  get inString(): boolean {
    return this.#inString
  }
}

/** Arguments that are JSON text as they are. */
export class JsonReader implements ArgumentsReader {
  readonly #end = new JsonEnd()

  read(text: string) {
    const { ended, to } = this.#end.scan(text)
    return { to, json: text.slice(0, to), ended }
  }
}
