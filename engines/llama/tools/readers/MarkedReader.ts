// Reads arguments that stand between markers, as in `{city:<|"|>Rome<|"|>,days:2}`, and gives them as JSON text.
import type { ArgumentsReader } from "./CallParser.ts"
import { beginningAtEnd } from "./OpenedReader.ts"

type State = "start" | "firstKey" | "key" | "firstItem" | "value" | "literal" | "text" | "after"

/** Characters of numbers, `true`, `false` and `null`. */
const notLiteral = /[^-+.0-9A-Za-z]/

export class MarkedReader implements ArgumentsReader {
  readonly #marker: string
  /** The brackets that are open. */
  readonly #open: Array<"{" | "["> = []
  #state: State = "start"
  #text = ""
  #at = 0
  #json = ""

  constructor(marker: string) {
    this.#marker = marker
  }

  read(text: string): { readonly to: number; readonly json: string; readonly ended: boolean } | undefined {
    this.#text = text
    this.#at = 0
    this.#json = ""
    let more: boolean | undefined = true
    while (more && !this.#ended) more = this.#step()
    return more === undefined ? undefined : { to: this.#at, json: this.#json, ended: this.#ended }
  }

  get #ended(): boolean {
    return this.#state === "after" && this.#open.length === 0
  }

  /** One step forward; false if more text is needed, undefined if this is not the syntax. */
  #step(): boolean | undefined {
    const next = this.#text.charAt(this.#at)
    if (next === "" && this.#state !== "text") return false
    switch (this.#state) {
      case "start":
        return next === "{" ? this.#opens("{") : undefined
      case "firstKey":
        return next === "}" ? this.#closes() : this.#key()
      case "key":
        return this.#key()
      case "firstItem":
        return next === "]" ? this.#closes() : this.#value(next)
      case "value":
        return this.#value(next)
      case "literal":
        return this.#literal()
      case "text":
        return this.#between()
      case "after":
        if (next === (this.#open.at(-1) === "{" ? "}" : "]")) return this.#closes()
        if (next !== ",") return undefined
        this.#take(1, ", ")
        this.#state = this.#open.at(-1) === "{" ? "key" : "value"
        return true
    }
  }

  #take(characters: number, json: string): void {
    this.#at += characters
    this.#json += json
  }

  #opens(bracket: "{" | "["): true {
    this.#open.push(bracket)
    this.#take(1, bracket)
    this.#state = bracket === "{" ? "firstKey" : "firstItem"
    return true
  }

  #closes(): true {
    this.#take(1, this.#open.pop() === "{" ? "}" : "]")
    this.#state = "after"
    return true
  }

  #key(): boolean {
    const end = this.#text.indexOf(":", this.#at)
    if (end < 0) return false
    const key = this.#text.slice(this.#at, end)
    this.#take(key.length + 1, `${JSON.stringify(key)}: `)
    this.#state = "value"
    return true
  }

  #value(next: string): boolean | undefined {
    if (next === "{" || next === "[") return this.#opens(next)
    const rest = this.#text.slice(this.#at, this.#at + this.#marker.length)
    if (rest === this.#marker) {
      this.#take(rest.length, '"')
      this.#state = "text"
      return true
    }
    if (this.#marker.startsWith(rest)) return false
    if (notLiteral.test(next)) return undefined
    this.#state = "literal"
    return true
  }

  #literal(): boolean {
    const length = this.#text.slice(this.#at).search(notLiteral)
    const literal = length < 0 ? this.#text.slice(this.#at) : this.#text.slice(this.#at, this.#at + length)
    this.#take(literal.length, literal)
    if (length < 0) return false
    this.#state = "after"
    return true
  }

  #between(): boolean {
    const end = this.#text.indexOf(this.#marker, this.#at)
    const rest = this.#text.slice(this.#at, end < 0 ? undefined : end)
    const text = end < 0 ? rest.slice(0, rest.length - beginningAtEnd(rest, this.#marker)) : rest
    this.#take(text.length, JSON.stringify(text).slice(1, -1))
    if (end < 0) return false
    this.#take(this.#marker.length, '"')
    this.#state = "after"
    return true
  }
}
