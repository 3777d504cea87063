// The prompt of a request, or why it cannot be one.
import * as Effect from "effect/Effect"
import { textOf } from "../../protocol/Contents.ts"
import { EngineError, type GenerateRequest, invalidInput } from "../../protocol/Engine.ts"
import type { Prompt } from "../prompt/ChatPrompt.ts"
import { TemplateRefused } from "../prompt/ChatTemplate.ts"
import type { Model } from "./LoadedGguf.ts"

/** The larger part of a prompt that is too long: the definitions of its tools, or the conversation. */
const longPart = ({ prompt, tools }: GenerateRequest): string => {
  if (!("turns" in prompt)) return "prompt"
  const said = prompt.turns.reduce((sum, { content }) => sum + textOf(content).length, 0)
  return tools !== undefined && JSON.stringify(tools.tools).length > said ? "tools" : "messages"
}

/** The prompt's tokens. Fails before `started` if the prompt is invalid, empty or too long. */
export const readPrompt = (model: Model, request: GenerateRequest): Effect.Effect<Prompt, EngineError> =>
  Effect.suspend(() => {
    const field = "turns" in request.prompt ? "messages" : "prompt"
    let read: ReturnType<Model["prompts"]["read"]>
    try {
      read = model.prompts.read(request)
    } catch (cause) {
      const said = cause instanceof Error ? cause.message : String(cause)
      // E.g. the template refuses an assistant message in front. Other errors are faults of the template.
      const reason = cause instanceof TemplateRefused ? "InvalidInput" : "Failed"
      const detail = `the model's chat template: ${said}`
      return Effect.fail(new EngineError({ reason, field: reason === "Failed" ? "" : field, detail }))
    }
    if ("tokens" in read) return Effect.succeed(read)
    if ("noInfill" in read)
      return Effect.fail(
        invalidInput("suffix", "this model has no tokens for filling in text before a suffix"),
      )
    if ("unknownToken" in read) {
      const detail = `has the token ${read.unknownToken}; this model has the tokens 0 to ${read.size - 1}`
      return Effect.fail(invalidInput(field, detail))
    }
    if ("noPictures" in read) return Effect.fail(invalidInput(field, read.noPictures))
    if ("empty" in read) return Effect.fail(invalidInput(field, "is empty"))
    const { contextTokens } = model
    const { promptTokens } = read
    const detail = `${promptTokens} tokens do not fit into a context of ${contextTokens}`
    return Effect.fail(
      new EngineError({
        reason: "PromptTooLong",
        field: longPart(request),
        detail,
        promptTokens,
        contextTokens,
      }),
    )
  })
