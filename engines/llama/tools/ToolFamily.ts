// What a model family knows of tools: how its template gets them, what a reply with calls looks like, how it is read.
import type { ChatTurn, TextPart, Tool, ToolUse } from "../../protocol/Text.ts"
import type { Rules } from "../grammar/Expression.ts"
import type { ReplyShape } from "../grammar/ReplyShape.ts"
import type { Places } from "./Places.ts"

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

/**
 * Makes the reader of a reply. `hasFormat`: an answer is held to a response format, so the reply is either calls or JSON. Then
 * only a reply that begins with a whole call syntax up to the arguments of one of these tools is read as calls. Call syntax inside
 * a text of the JSON is text, and so is an answer that begins like a call (`{"name": "` in the family llama3).
 */
export type MakeParser = (tools: ReadonlyArray<Tool>, hasFormat?: boolean) => CallParser

/** The rules of a JSON value that is a tool's arguments, or one of them. The prefix begins the names of its rules. */
export type ArgumentsOf = (tool: Tool, prefix: string) => Rules

/** A call as it is written into a reply. */
export interface WrittenCall {
  readonly name: string
  /** JSON text of an object. */
  readonly arguments: string
}

/** How a family writes calls, apart from its template. */
export interface CallSyntax {
  /** The first of them begins a call where one is required. */
  readonly openers: ReadonlyArray<string>
  /** False: a reply has at most one call. */
  readonly several: boolean
  /** Spellings of special tokens that the vocabulary has to give as text. */
  readonly markers: ReadonlyArray<string>
  /** All calls of a reply, as the model should write them. */
  readonly write: (calls: ReadonlyArray<WrittenCall>, tools: ReadonlyArray<Tool>) => string
  /** The text of one argument in an object that is given to the template: a text or a JSON value. */
  readonly argument: (
    tool: Tool | undefined,
    key: string,
    json: string,
  ) => { readonly kind: "text" | "json"; readonly text: string }
  /** The names of a tool's own rules begin with `tool`, its index and a dot. */
  readonly replies: (use: ToolUse, argumentsOf: ArgumentsOf) => ReplyShape
  readonly parser: MakeParser
  /** The id of a call in the template, for families that write ids into replies. */
  readonly idOf?: (call: number) => string
}

/** Variables of a model's template. */
export interface ToolVariables {
  readonly messages: ReadonlyArray<Record<string, unknown>>
  readonly tools?: ReadonlyArray<unknown>
}

export interface ToolFamily {
  readonly name: string
  /**
   * True if the rendered history continues the rendered prompt of the reply exactly as the reply was written, so that its
   * tokens are found in the prefix cache.
   */
  readonly historyMatches: boolean
  /** Spellings of special tokens that the vocabulary has to give as text. */
  readonly markers: ReadonlyArray<string>
  /** The turns in the form that the template understands: without definitions and calls if it knows none. */
  readonly prepared: (turns: ReadonlyArray<ChatTurn>, tools: ReadonlyArray<Tool>) => ReadonlyArray<ChatTurn>
  /** Prepared turns, and tools, as variables of the template. */
  readonly variables: (
    turns: ReadonlyArray<ChatTurn>,
    tools: ReadonlyArray<Tool>,
    places: Places,
  ) => ToolVariables
  /** @throws ToolNotHeld if a strict tool has a schema that the family's syntax cannot express. */
  readonly replies: (use: ToolUse, argumentsOf: ArgumentsOf) => ReplyShape
  readonly parser: MakeParser
}

/** A strict tool whose arguments the family's call syntax cannot hold to its schema. */
export class ToolNotHeld extends Error {
  /** Index in the list of tools. */
  readonly tool: number
  /** Where in its parameters, like `properties.age`. */
  readonly path: string

  constructor(tool: number, path: string, detail: string) {
    super(detail)
    this.tool = tool
    this.path = path
  }
}
