// The body of a chat request, and an answer that grows from the chunks of its stream.
import { Problem } from "../../api/Problems.js"

/**
 * @typedef {object} ToolCall
 * @property {string} id
 * @property {string} name
 * @property {string} arguments the JSON text, maybe only its beginning
 */

/**
 * @typedef {object} ChatMessage
 * @property {"user" | "assistant" | "tool"} role
 * @property {string} text
 * @property {Array<string>} [pictures] as `data:` URLs
 * @property {string} [reasoning]
 * @property {Array<ToolCall>} [calls]
 * @property {string} [callId] of a tool's result
 * @property {string} [about] of an answer: what to know of the model that wrote it
 * @property {boolean} [isBroken] of an answer: its stream ended before its end
 */

/**
 * @typedef {object} ChatSettings
 * @property {string} model
 * @property {string} system
 * @property {number | undefined} temperature
 * @property {number | undefined} topP
 * @property {number | undefined} maxTokens
 * @property {number | undefined} seed
 * @property {string} effort
 * @property {ReadonlyArray<unknown>} tools
 */

/** @param {ChatMessage} message */
const wireMessage = (message) => {
  const { calls, callId, pictures = [], role, text } = message
  if (role === "tool") return { role, tool_call_id: callId, content: text }
  if (role === "assistant" && calls !== undefined && calls.length > 0)
    return {
      role,
      content: text === "" ? null : text,
      tool_calls: calls.map((call) => ({
        id: call.id,
        type: "function",
        function: { name: call.name, arguments: call.arguments },
      })),
    }
  if (pictures.length === 0) return { role, content: text }
  const parts = pictures.map((url) => ({ type: "image_url", image_url: { url } }))
  return { role, content: [...parts, { type: "text", text }] }
}

/**
 * @param {ChatSettings} settings
 * @param {ReadonlyArray<ChatMessage>} messages
 * @returns {Record<string, unknown>} the body of `POST /v1/chat/completions`
 */
export const chatBody = (settings, messages) => {
  const { effort, maxTokens, model, seed, system, temperature, tools, topP } = settings
  const first = system.trim() === "" ? [] : [{ role: "system", content: system }]
  return {
    model,
    messages: [...first, ...messages.map(wireMessage)],
    stream: true,
    stream_options: { include_usage: true },
    ...(temperature === undefined ? {} : { temperature }),
    ...(topP === undefined ? {} : { top_p: topP }),
    ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
    ...(seed === undefined ? {} : { seed }),
    ...(effort === "none" ? {} : { reasoning_effort: effort }),
    ...(tools.length === 0 ? {} : { tools }),
  }
}

/**
 * Adds one chunk of a stream to the answer.
 * @param {ChatMessage} answer changed
 * @param {any} chunk
 * @returns {{ grew: boolean, tokens: number | undefined, finish: string | undefined }}
 */
export const addChunk = (answer, chunk) => {
  if (chunk.error !== undefined)
    throw new Problem(
      `The node ended the answer (${chunk.error.message}): what came so far is shown; try again.`,
    )
  const choice = chunk.choices?.[0]
  const delta = choice?.delta ?? {}
  const before = answer.text.length + (answer.reasoning?.length ?? 0)
  if (typeof delta.content === "string") answer.text += delta.content
  if (typeof delta.reasoning_content === "string")
    answer.reasoning = (answer.reasoning ?? "") + delta.reasoning_content
  for (const call of delta.tool_calls ?? []) {
    answer.calls ??= []
    const known = answer.calls[call.index] ?? { id: "", name: "", arguments: "" }
    answer.calls[call.index] = known
    if (call.id !== undefined) known.id = call.id
    if (call.function?.name !== undefined) known.name = call.function.name
    known.arguments += call.function?.arguments ?? ""
  }
  const grew = answer.text.length + (answer.reasoning?.length ?? 0) > before || delta.tool_calls !== undefined
  return { grew, tokens: chunk.usage?.completion_tokens, finish: choice?.finish_reason ?? undefined }
}

/**
 * The tools of a text that a user wrote: a JSON list of OpenAI's tools, or of bare functions.
 * @param {string} text
 * @returns {{ tools: ReadonlyArray<unknown>, problem: string }}
 */
export const toolsOf = (text) => {
  if (text.trim() === "") return { tools: [], problem: "" }
  try {
    const value = JSON.parse(text)
    const list = Array.isArray(value) ? value : [value]
    const isObject = (/** @type {unknown} */ one) => typeof one === "object" && one !== null
    if (!list.every(isObject)) return { tools: [], problem: "Tools: each one must be a JSON object." }
    return {
      tools: list.map((one) => ("type" in one ? one : { type: "function", function: one })),
      problem: "",
    }
  } catch (error) {
    return { tools: [], problem: `Tools: this is no JSON (${error instanceof Error ? error.message : ""}).` }
  }
}
