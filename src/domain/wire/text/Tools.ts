// Tools in a chat request, in OpenAI's form and in its older form of functions (protocol 7.7). Schemas.
import { Schema } from "effect"
import { anyObject, flag, name, optional, text } from "./Fields.ts"

/** Tools of one request. OpenAI's limit. */
export const maxTools = 128

const atMost = Schema.isMaxLength(maxTools, { message: `must be at most ${maxTools} tools` })

export const FunctionDefinition = Schema.Struct({
  name,
  description: optional(text),
  /** JSON Schema of the arguments. Absent: the function takes none. */
  parameters: optional(anyObject),
  strict: optional(flag),
})
export type FunctionDefinition = typeof FunctionDefinition.Type

/** A tool of another type than `function` is left out (protocol 7.7). */
const ToolDefinition = Schema.Struct({
  type: Schema.optionalKey(text),
  function: Schema.optionalKey(FunctionDefinition),
})

const mode = Schema.Literals(["auto", "required"])

const ToolChoice = Schema.Union([
  Schema.Literals(["auto", "none", "required"]),
  Schema.Struct({ type: Schema.Literal("function"), function: Schema.Struct({ name: Schema.String }) }),
  Schema.Struct({
    type: Schema.Literal("allowed_tools"),
    allowed_tools: Schema.Struct({
      mode,
      tools: Schema.Array(Schema.Struct({ function: Schema.Struct({ name: Schema.String }) })).check(atMost),
    }),
  }),
]).annotate({ message: "must be auto, none, required, a function by its name, or allowed_tools" })

const FunctionChoice = Schema.Union([
  Schema.Literals(["auto", "none"]),
  Schema.Struct({ name: Schema.String }),
]).annotate({ message: "must be auto, none, or a function by its name" })

/** Fields of a chat request. */
export const toolFields = {
  tools: optional(Schema.Array(ToolDefinition).check(atMost)),
  tool_choice: optional(ToolChoice),
  parallel_tool_calls: optional(flag),
  /** The older form of `tools`, which wins if both are given. */
  functions: optional(Schema.Array(FunctionDefinition).check(atMost)),
  function_call: optional(FunctionChoice),
}

/** A call in an assistant message of a request. */
export const RequestedCall = Schema.Struct({
  id: text.check(Schema.isMinLength(1, { message: "must not be empty" })),
  type: Schema.optionalKey(Schema.Literal("function").annotate({ message: "must be function" })),
  function: Schema.Struct({ name, arguments: text }),
})

/** The older form of a call. In a reply `arguments` is the JSON text of an object. */
export const FunctionCall = Schema.Struct({ name, arguments: text })

/** A call in a reply. */
export const ToolCallReply = Schema.Struct({
  id: Schema.String,
  type: Schema.Literal("function"),
  function: FunctionCall,
})

/** A call in a streamed delta: the first has everything but arguments, the later ones have a piece of the arguments. */
export const ToolCallDelta = Schema.Struct({
  index: Schema.Int,
  id: Schema.optionalKey(Schema.String),
  type: Schema.optionalKey(Schema.Literal("function")),
  function: Schema.Struct({ name: Schema.optionalKey(Schema.String), arguments: Schema.String }),
})

export const FunctionCallDelta = Schema.Struct({
  name: Schema.optionalKey(Schema.String),
  arguments: Schema.String,
})
