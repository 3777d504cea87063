// What a reader of replies with calls takes and gives.
import type { TextPart } from "../../../protocol/Text.ts"

/** A piece of a reply. Without `part` it is the answer's own text. */
export interface ParsedPiece {
  readonly text: string
  readonly part?: TextPart
}

/** Reads a reply as it streams. The pieces do not depend on where the text is cut, except for their borders. */
export interface CallParser {
  /** Answer text is given at once, except for white space and what could be the beginning of a call. */
  readonly push: (text: string) => ReadonlyArray<ParsedPiece>
  /** `cut`: the reply ended by its length, so a beginning of call syntax at its end is not text of the answer. */
  readonly end: (cut?: boolean) => ReadonlyArray<ParsedPiece>
}

/** Reads the arguments of one call as they stream. */
export interface ArgumentsReader {
  /**
   * Reads what can be read of the text: how many characters, the JSON text that they mean, and whether the arguments end with
   * them. What was not read comes again with the next text. Undefined: this is not the syntax of arguments.
   */
  readonly read: (
    text: string,
  ) => { readonly to: number; readonly json: string; readonly ended: boolean } | undefined
}
