// Reads calls with JSON arguments as they stream. The grammar holds calls to their syntax; text that does not have it all the
// same ends the reading, and nothing of it is given.
import { ContentScanner } from "./ContentScanner.ts"
import { JsonEnd } from "./JsonText.ts"
import type { CallParser, ParsedPiece } from "./ToolFamily.ts"

export interface CallSteps {
  readonly openers: ReadonlyArray<string>
  readonly atStart: boolean
  /** Between the opener and the first name. */
  readonly head: string
  readonly afterName: (call: number) => string
  readonly afterArguments: (call: number) => string
  /** Between a call and the name of the next one. */
  readonly next: string | undefined
}

const notName = /[^A-Za-z0-9_-]/

/** Splits a stream of text at fixed texts. */
export class Steps {
  rest = ""

  /** Takes the text away if it is next; undefined if more text is needed to know. */
  take(expected: string): boolean | undefined {
    if (this.rest.startsWith(expected)) {
      this.rest = this.rest.slice(expected.length)
      return true
    }
    return expected.startsWith(this.rest) ? undefined : false
  }

  /** Takes the name that ends before the first character that no name has. */
  name(): string | undefined {
    const at = this.rest.search(notName)
    if (at < 0) return undefined
    const name = this.rest.slice(0, at)
    this.rest = this.rest.slice(at)
    return name
  }
}

type State = "content" | "head" | "name" | "middle" | "arguments" | "tail" | "next" | "ended"

export class CallReader implements CallParser {
  readonly #form: CallSteps
  readonly #content: ContentScanner
  readonly #steps = new Steps()
  #state: State = "content"
  #json = new JsonEnd()
  #call = -1

  /** `names` are given for replies that are held to a format, see `CallSyntax.parser`. */
  constructor(form: CallSteps, names?: ReadonlyArray<string>) {
    const { afterName, atStart, head, openers } = form
    this.#form = form
    this.#content = new ContentScanner(
      openers.flatMap((opener) =>
        names === undefined
          ? [{ opener, text: opener }]
          : names.map((name) => ({ opener, text: `${opener}${head}${name}${afterName(0)}{` })),
      ),
      atStart || names !== undefined,
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
    while (this.#step(pieces));
    if (this.#state === "ended") this.#steps.rest = ""
    return pieces
  }

  end(cut = false): ReadonlyArray<ParsedPiece> {
    const held = this.#state === "content" ? this.#content.end(cut) : ""
    return held === "" ? [] : [{ text: held }]
  }

  /** One step forward; false if more text is needed. */
  #step(pieces: Array<ParsedPiece>): boolean {
    const { head, afterName, afterArguments, next } = this.#form
    switch (this.#state) {
      case "head":
        return this.#pass(head, "name")
      case "name": {
        const name = this.#steps.name()
        if (name === undefined) return false
        this.#call++
        pieces.push({ text: "", part: { kind: "call", call: this.#call, name } })
        this.#state = "middle"
        return true
      }
      case "middle":
        this.#json = new JsonEnd()
        return this.#pass(afterName(this.#call), "arguments")
      case "arguments": {
        const { rest } = this.#steps
        const { to, ended } = this.#json.scan(rest)
        if (to > 0) pieces.push({ text: rest.slice(0, to), part: { kind: "arguments", call: this.#call } })
        this.#steps.rest = rest.slice(to)
        if (ended) this.#state = "tail"
        return ended
      }
      case "tail":
        return this.#pass(afterArguments(this.#call), next === undefined ? "ended" : "next")
      case "next":
        return this.#pass(next ?? "", "name")
      default:
        return false
    }
  }

  #pass(expected: string, then: State): boolean {
    const taken = this.#steps.take(expected)
    if (taken === undefined) return false
    this.#state = taken ? then : "ended"
    return taken
  }
}
