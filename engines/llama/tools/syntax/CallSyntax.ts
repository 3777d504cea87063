// How a family writes calls into a reply, apart from its template.
import type { JsonObject } from "#domain/wire/Json.ts"
import type { ReplyShape, Rules } from "../../../grammar/Expression.ts"
import type { Tool, ToolUse } from "../../../protocol/Text.ts"
import type { CallParser } from "../readers/CallParser.ts"

/**
 * The rules of a value that is a tool's arguments, or one of them: JSON, or with texts between markers. The prefix begins the
 * names of its rules.
 */
export type ArgumentsOf = (tool: Tool, prefix: string, marker?: string) => Rules

/**
 * Makes the reader of a reply. `hasFormat`: an answer is held to a response format, so the reply is either calls or JSON. Then
 * only a reply that begins with a whole call syntax up to the arguments of one of these tools is read as calls. Call syntax inside
 * a text of the JSON is text, and so is an answer that begins like a call (`{"name": "` in the family llama3).
 */
export type MakeParser = (tools: ReadonlyArray<Tool>, hasFormat?: boolean) => CallParser

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
  /** Spellings of special tokens that end a reply, besides those that llama.cpp takes for ends. */
  readonly ends?: ReadonlyArray<string>
  /** All calls of a reply, as the model should write them. */
  readonly write: (calls: ReadonlyArray<WrittenCall>, tools: ReadonlyArray<Tool>) => string
  /** The text of one argument in an object that is given to the template: a text or a JSON value. */
  readonly argument: (
    tool: Tool | undefined,
    key: string,
    json: string,
  ) => { readonly kind: "text" | "json"; readonly text: string }
  /**
   * For families that write arguments as `{city:<m>Rome<m>,days:2}`: what begins and ends a text. Their templates print such
   * arguments from an object.
   */
  readonly marker?: string
  /** How the family's templates print the result of a tool. Absent: any way will do. */
  readonly result?: (name: string, text: string) => string
  /** Parameters of a tool as the family's templates can print them. Absent: as they are. */
  readonly parameters?: (schema: JsonObject) => JsonObject
  /** The names of a tool's own rules begin with `tool`, its index and a dot. */
  readonly replies: (use: ToolUse, argumentsOf: ArgumentsOf) => ReplyShape
  readonly parser: MakeParser
  /** The id of a call in the template, for families that write ids into replies. */
  readonly idOf?: (call: number, name: string) => string
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
