// Recognises the family of a chat template (`familyOf`), by the table of families (FamilyTable.ts) and by rendering examples (Probe.ts).
import type { ChatTurn } from "../../protocol/Text.ts"
import { knownFamilies } from "./FamilyTable.ts"
import { generalCalls, plainTurns } from "./GeneralForm.ts"
import { plainMessage, preparedTurns, templateVariables } from "./Messages.ts"
import { probed } from "./Probe.ts"
import type { Places } from "./places/Places.ts"
import type { ToolFamily, ToolVariables } from "./ToolFamily.ts"

/** The family for templates that know no tools, and for models without a template. */
export const generalFamily: ToolFamily = {
  name: "general",
  historyMatches: true,
  markers: generalCalls.markers,
  ends: [],
  prepared: plainTurns,
  variables: (turns, _tools, places) => ({ messages: turns.map((turn) => plainMessage(turn, places)) }),
  replies: generalCalls.replies,
  parser: generalCalls.parser,
}

/** Renders the template with these variables and what the model itself defines, or throws. */
type RenderMessages = (variables: ToolVariables) => string

/**
 * The family of a template. It is the first row of the table that fits: the template's source contains all texts of the row, and
 * the template, when it renders examples, prints tool calls in the syntax of the row. The general family if no row fits.
 */
export const familyOf = (source: string, render: RenderMessages, places: () => Places): ToolFamily => {
  for (const { name, syntax, knownBy } of knownFamilies) {
    if (!knownBy.every((text) => source.includes(text))) continue
    const form = probed(syntax, render, places)
    if (form === undefined) continue
    return {
      name,
      historyMatches: form.historyMatches,
      markers: syntax.markers,
      ends: syntax.ends ?? [],
      prepared: (turns, tools) => preparedTurns(syntax, form, turns, tools),
      variables: (turns, tools, own) => templateVariables(syntax, form, turns, tools, own),
      replies: syntax.replies,
      parser: syntax.parser,
    }
  }
  return { ...generalFamily, historyMatches: continuesPlainly(render, places) }
}

/** `historyMatches` of the general family: true if a rendered history begins with the prompt and the reply exactly as they were. */
const continuesPlainly = (render: RenderMessages, newPlaces: () => Places): boolean => {
  const text = (turns: ReadonlyArray<ChatTurn>) => {
    const places = newPlaces()
    const messages = turns.map((turn) => plainMessage(turn, places))
    return places
      .parts(render({ messages }))
      .map((part) => part.text)
      .join("")
  }
  const user: ChatTurn = { role: "user", content: "Hello" }
  const reply = generalCalls.write([{ name: "probe", arguments: "{}" }], [])
  try {
    return text([user, { role: "assistant", content: reply }, user]).startsWith(text([user]) + reply)
  } catch {
    return false
  }
}
