// What a request's tools, response format and thinking demand of a reply, as its shape.

import type { Expression, ReplyShape, Rules } from "../../grammar/Expression.ts"
import { jsonObjectRules } from "../../grammar/schema/AnyJson.ts"
import type { Notation } from "../../grammar/schema/JsonText.ts"
import { schemaRules } from "../../grammar/schema/SchemaRules.ts"
import type { GenerateRequest } from "../../protocol/Engine.ts"
import type { ResponseFormat, Tool, ToolUse } from "../../protocol/Text.ts"
import { type Progress, Refused, type Shape, unwatched } from "../compiler/GrammarThread.ts"
import { knownFamilies } from "../tools/FamilyTable.ts"
import { generalFamily } from "../tools/RecogniseFamily.ts"
import { type CallSyntax, ToolNotHeld } from "../tools/syntax/CallSyntax.ts"
import { withObjectArguments } from "./Arguments.ts"

/** How a family writes calls. */
type Calls = Pick<CallSyntax, "replies">

/** As Jinja's `tojson` prints JSON, so that a rendered call equals the decoded one. */
const jsonNotation: Notation = "spaced"

const at = (field: string, path: string): string => (path === "" ? field : `${field}.${path}`)

const rulesOf = (
  schema: Tool["parameters"] | boolean,
  strict: boolean,
  field: string,
  prefix: string,
  progress: Progress,
  notation: Notation = jsonNotation,
): Rules => {
  progress.at(field)
  const found = schemaRules(schema, { strict, notation, prefix, checkpoint: progress.checkpoint })
  if ("problem" in found) throw new Refused(at(field, found.problem.path), found.problem.detail)
  return found.rules
}

const formatPrefix = "format"

const formatRules = (format: ResponseFormat, progress: Progress): Rules =>
  format.kind === "json"
    ? jsonObjectRules({ notation: jsonNotation, prefix: formatPrefix })
    : rulesOf(format.schema, format.strict, "format", formatPrefix, progress)

const fieldOfTool = (index: number): string => `tools[${index}]`

/** What the names of rules say, see `CallSyntax.replies`. */
const fieldOf = (rule: string): string | undefined => {
  if (rule.startsWith(formatPrefix)) return "format"
  const index = /^tool(\d+)\./.exec(rule)?.[1]
  return index === undefined ? undefined : fieldOfTool(Number(index))
}

const callShape = (family: Calls, asked: ToolUse, progress: Progress): ReplyShape => {
  const use = { ...asked, tools: asked.tools.map(withObjectArguments) }
  try {
    return family.replies(use, (tool, prefix, marker) =>
      rulesOf(
        tool.parameters,
        tool.strict,
        fieldOfTool(use.tools.findIndex(({ name }) => name === tool.name)),
        prefix,
        progress,
        marker === undefined ? undefined : { marker },
      ),
    )
  } catch (cause) {
    if (cause instanceof ToolNotHeld)
      throw new Refused(at(fieldOfTool(cause.tool), cause.path), cause.message)
    throw cause
  }
}

const either = (a: Rules, b: Rules): Rules => ({
  root: { kind: "choice", of: [a.root, b.root] },
  rules: new Map([...a.rules, ...b.rules]),
})

const answerShape = (
  family: Calls,
  { format, tools }: Pick<GenerateRequest, "format" | "tools">,
  progress: Progress,
): ReplyShape => {
  if (tools === undefined) {
    if (format === undefined) throw new Refused("", "demands nothing of a reply")
    return { stages: [], rules: formatRules(format, progress) }
  }
  if (format === undefined || tools.choice !== "auto") return callShape(family, tools, progress)
  // Either calls or an answer of this format.
  const calls = callShape(family, { ...tools, choice: "required" }, progress)
  return { stages: [], rules: either(formatRules(format, progress), calls.rules) }
}

/** What decides about the shape of a reply. Plain data. */
export interface ShapeRequest extends Pick<GenerateRequest, "format" | "tools"> {
  /** The closing marker of the thinking block that the reply begins with, if it has one. */
  readonly thoughtEnd?: string
  /** Name of the model's family. */
  readonly family: string
}

/** Models write line breaks between their thinking and their answer. */
const breaks: Expression = { kind: "repeat", of: { kind: "text", text: "\n" }, least: 0, most: 2 }

/** @throws Refused */
export const replyShape = (request: ShapeRequest, progress: Progress = unwatched): Shape => {
  const calls = knownFamilies.find(({ name }) => name === request.family)?.syntax ?? generalFamily
  const shape = answerShape(calls, request, progress)
  const { thoughtEnd } = request
  if (thoughtEnd === undefined) return { shape, fieldOf }
  const [next] = shape.stages
  const stages = [{ until: [thoughtEnd], mayEnd: next?.mayEnd ?? false }, ...shape.stages]
  const { root, rules } = shape.rules
  const after: Rules =
    next === undefined ? { root: { kind: "sequence", of: [breaks, root] }, rules } : shape.rules
  return { shape: { stages, rules: after }, fieldOf }
}
