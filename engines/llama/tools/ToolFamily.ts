// The type of a recognised family: how its template is given tools, the form of a reply with tool calls, and how such a reply is parsed.
// RecogniseFamily.ts makes it from a row of FamilyTable.ts.

import type { ReplyShape } from "../../grammar/Expression.ts"
import type { ChatTurn, Tool, ToolUse } from "../../protocol/Text.ts"
import type { Places } from "./places/Places.ts"
import type { ArgumentsOf, MakeParser } from "./syntax/CallSyntax.ts"

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
  /** Spellings of special tokens that end a reply, besides those that llama.cpp takes for ends. */
  readonly ends: ReadonlyArray<string>
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
