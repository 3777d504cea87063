// Reads XML-like calls as they stream and gives their arguments as JSON text, as it becomes known.
import type { Tool } from "../../protocol/Text.ts"
import { Steps } from "./CallReader.ts"
import { ContentScanner } from "./ContentScanner.ts"
import type { CallParser, ParsedPiece } from "./ToolFamily.ts"
import { type Property, propertiesOf } from "./XmlSchema.ts"

export interface XmlForm {
  readonly opener: string
  /** Between the opener and the first name. */
  readonly head: string
  readonly afterName: string
  /** Begins an argument. */
  readonly parameter: string
  readonly afterKey: string
  /** Ends a value. */
  readonly closer: string
  readonly afterValue: string
  /** Ends a call. */
  readonly tail: string
  /** Between a call and the name of the next one. */
  readonly next: string
}

type State =
  | "content"
  | "head"
  | "name"
  | "afterName"
  | "parameter"
  | "key"
  | "value"
  | "afterValue"
  | "next"
  | "ended"

export class XmlReader implements CallParser {
  readonly #form: XmlForm
  readonly #tools: ReadonlyArray<Tool>
  readonly #content: ContentScanner
  readonly #steps = new Steps()
  #state: State = "content"
  #call = -1
  #properties: ReadonlyMap<string, Property> = new Map()
  #first = true
  #isText = false

  /** `hasFormat` as for `CallSyntax.parser`. */
  constructor(tools: ReadonlyArray<Tool>, form: XmlForm, hasFormat = false) {
    const { afterName, head, opener } = form
    this.#tools = tools
    this.#form = form
    this.#content = new ContentScanner(
      hasFormat
        ? tools.map(({ name }) => ({ opener, text: opener + head + name + afterName }))
        : [{ opener, text: opener }],
      hasFormat,
    )
  }

  push(text: string): ReadonlyArray<ParsedPiece> {
    const pieces: Array<ParsedPiece> = []
    if (this.#state === "content") {
      const { content, after } = this.#content.push(text)
      if (content !== "") pieces.push({ text: content })
      if (after === undefined) return pieces
      this.#state = "head"
      this.#steps.rest = after.text
    } else this.#steps.rest += text
    let json = ""
    const give = (more: string) => {
      json += more
    }
    const flush = () => {
      if (json !== "") pieces.push({ text: json, part: { kind: "arguments", call: this.#call } })
      json = ""
    }
    while (this.#step(pieces, give, flush));
    flush()
    if (this.#state === "ended") this.#steps.rest = ""
    return pieces
  }

  end(cut = false): ReadonlyArray<ParsedPiece> {
    const held = this.#state === "content" ? this.#content.end(cut) : ""
    return held === "" ? [] : [{ text: held }]
  }

  /** One step forward; false if more text is needed. `give` takes JSON text, `flush` makes a piece of it. */
  #step(pieces: Array<ParsedPiece>, give: (json: string) => void, flush: () => void): boolean {
    const form = this.#form
    switch (this.#state) {
      case "head":
        return this.#pass(form.head, "name")
      case "name": {
        const name = this.#steps.name()
        if (name === undefined) return false
        flush()
        this.#call++
        pieces.push({ text: "", part: { kind: "call", call: this.#call, name } })
        const tool = this.#tools.find((known) => known.name === name)
        this.#properties = new Map(tool && propertiesOf(tool).map((property) => [property.key, property]))
        this.#first = true
        this.#state = "afterName"
        return true
      }
      case "afterName":
        if (!this.#pass(form.afterName, "parameter")) return false
        give("{")
        return true
      case "parameter": {
        if (this.#steps.take(form.parameter)) {
          this.#state = "key"
          return true
        }
        const { rest } = this.#steps
        if (form.parameter.startsWith(rest)) return false
        if (!this.#pass(form.tail, "next")) return false
        give("}")
        return true
      }
      case "key": {
        const at = this.#steps.rest.indexOf(form.afterKey)
        if (at < 0) return false
        const key = this.#steps.rest.slice(0, at)
        this.#steps.rest = this.#steps.rest.slice(at + form.afterKey.length)
        this.#isText = this.#properties.get(key)?.text !== false
        give(`${this.#first ? "" : ", "}${JSON.stringify(key)}: ${this.#isText ? '"' : ""}`)
        this.#first = false
        this.#state = "value"
        return true
      }
      case "value":
        return this.#value(give)
      case "afterValue":
        return this.#pass(form.afterValue, "parameter")
      case "next":
        return this.#pass(form.next, "name")
      default:
        return false
    }
  }

  #value(give: (json: string) => void): boolean {
    const { closer } = this.#form
    const { rest } = this.#steps
    const at = rest.indexOf(closer)
    let to = at
    if (at < 0) {
      let held = Math.min(closer.length - 1, rest.length)
      while (held > 0 && !rest.endsWith(closer.slice(0, held))) held--
      to = rest.length - held
    }
    const value = rest.slice(0, to)
    give(this.#isText ? JSON.stringify(value).slice(1, -1) : value)
    this.#steps.rest = at < 0 ? rest.slice(to) : rest.slice(at + closer.length)
    if (at < 0) return false
    if (this.#isText) give('"')
    this.#state = "afterValue"
    return true
  }

  #pass(expected: string, then: State): boolean {
    const taken = this.#steps.take(expected)
    if (taken === undefined) return false
    this.#state = taken ? then : "ended"
    return taken
  }
}
