// Reads calls whose arguments stand in one piece, as JSON or in a syntax of the family's own.
import type { ArgumentsReader, ParsedPiece } from "./CallParser.ts"
import type { Beginning } from "./ContentScanner.ts"
import { OpenedReader } from "./OpenedReader.ts"

export interface CallSteps {
  readonly openers: ReadonlyArray<string>
  readonly atStart: boolean
  /** Between the opener and the first name. */
  readonly head: string
  /** Between a name and the number of the call, for families that count calls; their number is not checked. */
  readonly beforeNumber: string | undefined
  /** Between the name, or the number, and the arguments. */
  readonly afterName: (call: number) => string
  readonly afterArguments: (call: number) => string
  /** Between a call and the name of the next one. */
  readonly next: string | undefined
  readonly argumentsReader: () => ArgumentsReader
}

type State = "head" | "name" | "number" | "digits" | "middle" | "arguments" | "tail" | "next"

const beginningsOf = (
  { afterName, beforeNumber, head, openers }: CallSteps,
  names: ReadonlyArray<string> | undefined,
): ReadonlyArray<Beginning> =>
  openers.flatMap((opener) => {
    if (names === undefined) return [{ opener, text: opener }]
    const end = beforeNumber ?? `${afterName(0)}{`
    return names.map((name) => ({ opener, text: opener + head + name + end }))
  })

export class CallReader extends OpenedReader<State> {
  readonly #form: CallSteps
  #arguments: ArgumentsReader

  /** `names` are given for replies that are held to a format, see `MakeParser`. */
  constructor(form: CallSteps, names?: ReadonlyArray<string>) {
    super(beginningsOf(form, names), form.atStart || names !== undefined, "head")
    this.#form = form
    this.#arguments = form.argumentsReader()
  }

  protected override step(state: State, pieces: Array<ParsedPiece>): boolean {
    const { afterArguments, afterName, beforeNumber, head, next } = this.#form
    switch (state) {
      case "head":
        return this.pass(head, "name")
      case "name":
        if (this.begins(pieces) === undefined) return false
        return this.to(beforeNumber === undefined ? "middle" : "number")
      case "number":
        return this.pass(beforeNumber ?? "", "digits")
      case "digits": {
        const length = this.rest.search(/[^0-9]/)
        if (length < 0) return false
        this.rest = this.rest.slice(length)
        return this.to("middle")
      }
      case "middle":
        this.#arguments = this.#form.argumentsReader()
        return this.pass(afterName(this.call), "arguments")
      case "arguments": {
        const read = this.#arguments.read(this.rest)
        if (read === undefined) return this.to(undefined)
        this.give(pieces, read.json)
        this.rest = this.rest.slice(read.to)
        return read.ended && this.to("tail")
      }
      case "tail":
        return this.pass(afterArguments(this.call), next === undefined ? undefined : "next")
      case "next":
        return this.pass(next ?? "", "name")
    }
  }
}
