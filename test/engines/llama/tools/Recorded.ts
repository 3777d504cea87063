// The conversation whose renderings were recorded, in the engine's terms.
import type { ChatTurn, Tool } from "#engines/protocol/Text.ts"
import conversation from "./conversation.json" with { type: "json" }

export const recordedTools: ReadonlyArray<Tool> = conversation.tools.map((tool) => ({
  ...tool.function,
  strict: false,
}))

export const recordedTurns = conversation.messages.map((message): ChatTurn => {
  const { role, content } = message
  if (role === "tool") return { role, content, callId: message.tool_call_id ?? "", name: message.name ?? "" }
  if (role !== "assistant") return { role: role === "system" ? role : "user", content }
  const calls = message.tool_calls?.map((call) => ({
    id: call.id,
    name: call.function.name,
    arguments: JSON.stringify(call.function.arguments),
  }))
  return calls === undefined ? { role, content } : { role, content, calls }
})
