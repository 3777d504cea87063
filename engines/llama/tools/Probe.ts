// Finds out by rendering examples what a template expects of messages with calls, and whether it prints them as the family
// writes them.
import type { ChatTurn, Tool, ToolCall } from "../../protocol/Text.ts"
import { preparedTurns, type TemplateForm, templateVariables } from "./Messages.ts"
import type { Places } from "./places/Places.ts"
import type { CallSyntax } from "./syntax/CallSyntax.ts"
import type { ToolVariables } from "./ToolFamily.ts"

const tool: Tool = {
  name: "probe_weather",
  description: "Weather of a city.",
  parameters: {
    type: "object",
    properties: {
      city: { type: "string", description: "Name of the city." },
      days: { type: "integer", description: "Number of days." },
    },
    required: ["city"],
  },
  strict: false,
}

const callOf = (city: string, days: number): ToolCall => ({
  id: `call-${city}`,
  name: tool.name,
  arguments: `{"city": "${city}", "days": ${days}}`,
})

const user: ChatTurn = { role: "user", content: "Hello" }
const result = (call: ToolCall): ChatTurn => ({
  role: "tool",
  content: "Sunny",
  callId: call.id,
  name: call.name,
})

interface ProbedForm extends TemplateForm {
  /** The history continues the reply's prompt as the reply was written. */
  readonly historyMatches: boolean
}

/** The forms to try, in this order. */
const shapes = ({ result: printed }: CallSyntax) =>
  (["text", "object"] as const).flatMap((shape) =>
    (["", null] as const).flatMap((emptyContent) =>
      (printed === undefined ? (["messages"] as const) : (["messages", "inside"] as const)).map(
        (results) => ({ emptyContent, results, shape }),
      ),
    ),
  )

export const probed = (
  syntax: CallSyntax,
  render: (variables: ToolVariables) => string,
  newPlaces: () => Places,
): ProbedForm | undefined => {
  const rendered = (form: TemplateForm, turns: ReadonlyArray<ChatTurn>): string | undefined => {
    const places = newPlaces()
    try {
      const prepared = preparedTurns(syntax, form, turns, [tool])
      const text = render(templateVariables(syntax, form, prepared, [tool], places))
      return places
        .parts(text)
        .map((part) => part.text)
        .join("")
    } catch {
      return undefined
    }
  }
  const calls = [callOf("Rome", 2), callOf("Oslo", 3)]

  const own = (several: boolean) => (several ? calls : calls.slice(0, 1))
  const turnsOf = (several: boolean): ReadonlyArray<ChatTurn> => [
    user,
    { role: "assistant", content: "", calls: own(several) },
    ...own(several).map(result),
  ]

  /** Whether the history continues the prompt of the reply as the reply is written. */
  const continues = (form: TemplateForm): boolean => {
    const prompt = rendered(form, [user])
    const written = syntax.write(own(form.several), [tool])
    return (
      prompt !== undefined && rendered(form, turnsOf(form.several))?.startsWith(prompt + written) === true
    )
  }

  /** False if the template prints the text of a message with calls behind the calls. */
  const textIsBefore = (form: TemplateForm): boolean => {
    const [call] = calls
    if (call === undefined) return true
    const turns: ReadonlyArray<ChatTurn> = [
      user,
      { role: "assistant", content: "Checking.", calls: [call] },
      result(call),
    ]
    const history = rendered(form, turns) ?? ""
    return history.indexOf("Checking.") <= history.indexOf(syntax.write([call], [tool]))
  }

  for (const several of syntax.several ? [true, false] : [false]) {
    let shortest: { readonly form: TemplateForm; readonly length: number } | undefined
    for (const { emptyContent, results, shape } of shapes(syntax)) {
      const plain = {
        arguments: shape,
        emptyContent,
        several,
        emptyReasoning: undefined,
        results,
        textBefore: true,
      }
      const definitions = rendered({ ...plain, definitions: true }, [user])?.includes(tool.name) === true
      const form: TemplateForm = {
        ...plain,
        definitions,
        textBefore: textIsBefore({ ...plain, definitions }),
      }
      const history = rendered(form, turnsOf(several))
      if (history?.includes(syntax.write(own(several), [tool])) !== true) continue
      if (syntax.result !== undefined && !history.includes(syntax.result(tool.name, "Sunny"))) continue
      if (continues(form)) return { ...form, historyMatches: true }
      const thought = { ...form, emptyReasoning: "\n" }
      if (continues(thought)) return { ...thought, historyMatches: true }
      // The shortest prints nothing besides the calls.
      if (shortest === undefined || history.length < shortest.length)
        shortest = { form, length: history.length }
    }
    if (shortest !== undefined) return { ...shortest.form, historyMatches: false }
  }
  return undefined
}
