// The pieces of one reply of the fake engine: reasoning, text, calls and their log probabilities, one token each. Pure.
import type { GenerateRequest, SampledLogprob, TextPart, ToolUse } from "../protocol/Engine.ts"
import { smallValue } from "./FakeJson.ts"
import { seenIn } from "./FakePictures.ts"
import { type FakeScript, unitText, wholeCharacters } from "./FakeScript.ts"

interface FakePiece {
  readonly text: string
  readonly part?: TextPart
}

export interface FakeReply {
  /** Pieces, unless the reply is cut before. */
  readonly total: number
  readonly hasCalls: boolean
  readonly at: (index: number) => FakePiece
}

/** Characters of a call's arguments in one piece. */
const charsOfPiece = 4

interface ScriptedCall {
  readonly name: string
  readonly arguments: unknown
}

/** What a request that demands a call gets without a script. */
const demandedCalls = ({ choice, tools }: ToolUse): ReadonlyArray<ScriptedCall> => {
  if (choice === "auto") return []
  const tool = choice === "required" ? tools[0] : tools.find(({ name }) => name === choice.name)
  if (tool === undefined) return []
  return [{ name: tool.name, arguments: smallValue(tool.parameters, tool.parameters) ?? {} }]
}

/** A request that offers no tools gets no calls, also if its script has some. */
const callsOf = ({ tools }: GenerateRequest, script: FakeScript): ReadonlyArray<ScriptedCall> => {
  if (tools === undefined) return []
  const calls = script.calls ?? demandedCalls(tools)
  return tools.parallel ? calls : calls.slice(0, 1)
}

const callPieces = ({ arguments: given, name }: ScriptedCall, call: number): ReadonlyArray<FakePiece> => {
  const text = typeof given === "string" ? given : JSON.stringify(given)
  const characters = [...text]
  const pieces: Array<FakePiece> = [{ text: "", part: { kind: "call", call, name } }]
  for (let at = 0; at < characters.length; at += charsOfPiece) {
    pieces.push({ text: characters.slice(at, at + charsOfPiece).join(""), part: { kind: "arguments", call } })
  }
  return pieces
}

const reasoningOf = (
  { thinkingTokens = 0 }: GenerateRequest,
  { reasoning }: FakeScript,
): ReadonlyArray<FakePiece> =>
  (typeof reasoning === "string" ? [reasoning] : (reasoning ?? []))
    .slice(0, thinkingTokens)
    .map((text) => ({ text: wholeCharacters(text), part: { kind: "reasoning" } }))

/** The text of a reply that is not scripted unit by unit; undefined for one that is. */
const wholeText = (request: GenerateRequest, script: FakeScript, reply: number): string | undefined => {
  const { pictures: _pictures, prompt: _prompt, ...terms } = request
  const { format } = terms
  if (script.request === true) return JSON.stringify(terms)
  if (script.replies !== undefined) return script.replies[reply % script.replies.length]
  if (script.isScript) return undefined
  if (format === undefined) return seenIn(request)
  const schema = format.kind === "schema" && typeof format.schema === "object" ? format.schema : {}
  return JSON.stringify(smallValue(schema, schema))
}

/** Reply number `reply` to a request. */
export const fakeReply = (request: GenerateRequest, script: FakeScript, reply: number): FakeReply => {
  const whole = wholeText(request, script, reply)
  const calls = callsOf(request, script)
  const ahead = reasoningOf(request, script)
  const behind = calls.flatMap(callPieces)
  const units = whole === undefined ? (script.tokens ?? (behind.length > 0 ? 0 : 16)) : 1
  const content = Math.max(units, whole === undefined ? (request.minTokens ?? 0) : 0)
  return {
    total: ahead.length + content + behind.length,
    hasCalls: calls.length > 0,
    at: (index) => {
      const unit = index - ahead.length
      const piece = ahead[index] ?? behind[unit - content]
      return piece ?? { text: whole === undefined ? unitText(script, unit) : wholeCharacters(whole) }
    },
  }
}

const bytesOf = (text: string): ReadonlyArray<number> => [...new TextEncoder().encode(text)]

/** Made-up probabilities: each token is the most likely one, and the alternatives are half as likely each. */
export const fakeLogprob = (token: string, top: number): SampledLogprob => ({
  token,
  bytes: bytesOf(token),
  logprob: Math.log(0.5),
  top: Array.from({ length: top }, (_, rank) => {
    const text = rank === 0 ? token : ` other${rank}`
    return { token: text, bytes: bytesOf(text), logprob: Math.log(0.5 ** (rank + 1)) }
  }),
})
