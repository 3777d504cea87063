// Reads XML-like calls as they stream and gives their arguments as JSON text, as it becomes known.
import type { ParsedPiece } from "./CallParser.ts"
import { beginningAtEnd, OpenedReader } from "./OpenedReader.ts"

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

/** Whether the arguments of a tool with this key are texts without quotes. Others are JSON. */
export type TextKeys = (tool: string) => (key: string) => boolean

type State = "head" | "name" | "afterName" | "parameter" | "key" | "value" | "afterValue" | "next"

export class XmlReader extends OpenedReader<State> {
  readonly #form: XmlForm
  readonly #textKeys: TextKeys
  #isTextKey: (key: string) => boolean = () => true
  #first = true
  #isText = false

  /** `names` are given for replies that are held to a format, see `MakeParser`. */
  constructor(form: XmlForm, textKeys: TextKeys, names?: ReadonlyArray<string>) {
    const { afterName, head, opener } = form
    super(
      names?.map((name) => ({ opener, text: opener + head + name + afterName })) ?? [
        { opener, text: opener },
      ],
      names !== undefined,
      "head",
    )
    this.#form = form
    this.#textKeys = textKeys
  }

  protected override step(state: State, pieces: Array<ParsedPiece>): boolean {
    const form = this.#form
    switch (state) {
      case "head":
        return this.pass(form.head, "name")
      case "name": {
        const name = this.begins(pieces)
        if (name === undefined) return false
        this.#isTextKey = this.#textKeys(name)
        this.#first = true
        return this.to("afterName")
      }
      case "afterName":
        if (!this.pass(form.afterName, "parameter")) return false
        this.give(pieces, "{")
        return true
      case "parameter":
        if (this.takes(form.parameter)) return this.to("key")
        if (form.parameter.startsWith(this.rest) || !this.pass(form.tail, "next")) return false
        this.give(pieces, "}")
        return true
      case "key":
        return this.#key(pieces)
      case "value":
        return this.#value(pieces)
      case "afterValue":
        return this.pass(form.afterValue, "parameter")
      case "next":
        return this.pass(form.next, "name")
    }
  }

  #key(pieces: Array<ParsedPiece>): boolean {
    const { afterKey } = this.#form
    const at = this.rest.indexOf(afterKey)
    if (at < 0) return false
    const key = this.rest.slice(0, at)
    this.rest = this.rest.slice(at + afterKey.length)
    this.#isText = this.#isTextKey(key)
    this.give(pieces, `${this.#first ? "" : ", "}${JSON.stringify(key)}: ${this.#isText ? '"' : ""}`)
    this.#first = false
    return this.to("value")
  }

  #value(pieces: Array<ParsedPiece>): boolean {
    const { closer } = this.#form
    const at = this.rest.indexOf(closer)
    const to = at < 0 ? this.rest.length - beginningAtEnd(this.rest, closer) : at
    const value = this.rest.slice(0, to)
    this.give(pieces, this.#isText ? JSON.stringify(value).slice(1, -1) : value)
    this.rest = at < 0 ? this.rest.slice(to) : this.rest.slice(at + closer.length)
    if (at < 0) return false
    if (this.#isText) this.give(pieces, '"')
    return this.to("afterValue")
  }
}
