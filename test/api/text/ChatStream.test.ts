// The two forms of a chat reply, whole and streamed, from the same random deltas: a client that adds up the stream has the
// whole message, every reply begins with its role and ends with its reason, and no text is lost, doubled or misplaced.
import { expect, it } from "@effect/vitest"
import fc from "fast-check"
import { ChatReply, type ChatReplyTerms } from "#api/text/ChatReply.ts"
import { ChatStream } from "#api/text/ChatStream.ts"
import type { GenerateFinish, TextDelta } from "#engines/protocol/Text.ts"
import { parseEventStream } from "../../support/clients/EventStream.ts"
import { runs } from "../../support/groups/Runs.ts"

const head = { id: "chatcmpl-1", created: 1, model: "m", system_fingerprint: "fp_1" }
const started = { promptTokens: 3, cachedTokens: 1 }

interface Message {
  role?: string
  content?: string | null
  reasoning_content?: string
  tool_calls?: Array<{ id?: string; type?: string; function: { name?: string; arguments: string } }>
  function_call?: { name?: string; arguments: string }
}
interface Chunk {
  readonly choices: ReadonlyArray<{
    readonly index: number
    readonly delta: Message & { readonly tool_calls?: ReadonlyArray<{ readonly index: number }> }
    readonly logprobs?: { readonly content: ReadonlyArray<unknown> }
    readonly finish_reason: string | null
  }>
}

/** What clients do with chunks. */
const added = (chunks: ReadonlyArray<Chunk>, replies: number) => {
  const choices = Array.from({ length: replies }, (_, index) => ({
    index,
    message: {} as Message,
    logprobs: [] as Array<unknown>,
    finish_reason: null as string | null,
  }))
  for (const { delta, finish_reason, index, logprobs } of chunks.flatMap((chunk) => chunk.choices)) {
    const choice = choices[index]!
    const { message } = choice
    expect(choice.finish_reason).toBe(null)
    if (finish_reason === null) expect(delta.role === "assistant").toBe(message.role === undefined)
    message.role ??= delta.role ?? "assistant"
    if (delta.content !== undefined) message.content = (message.content ?? "") + (delta.content ?? "")
    if (delta.reasoning_content !== undefined)
      message.reasoning_content = (message.reasoning_content ?? "") + delta.reasoning_content
    for (const { index: at, function: piece, id, type } of delta.tool_calls ?? []) {
      message.tool_calls ??= []
      message.tool_calls[at] ??= { id: id!, type: type!, function: { name: piece.name!, arguments: "" } }
      message.tool_calls[at].function.arguments += piece.arguments
    }
    if (delta.function_call !== undefined) {
      message.function_call ??= { name: delta.function_call.name!, arguments: "" }
      message.function_call.arguments += delta.function_call.arguments
    }
    choice.logprobs.push(...(logprobs?.content ?? []))
    choice.finish_reason = finish_reason
  }
  return choices
}

const text = fc.string({ unit: "binary", maxLength: 6 })

/** The deltas of one reply, in an order that engines send. */
const replyOf = (reply: number, logprobs: boolean, most: number) =>
  fc
    .record({
      thoughts: fc.array(text, { maxLength: 3 }),
      texts: fc.array(text, { maxLength: 5 }),
      calls: fc.array(
        fc.record({ name: fc.constantFrom("f", "g-1"), pieces: fc.array(text, { maxLength: 4 }) }),
        {
          maxLength: most,
        },
      ),
    })
    .map(({ calls, texts, thoughts }): ReadonlyArray<Omit<TextDelta, "completionTokens">> => {
      const of = reply === 0 ? {} : { reply }
      const content = texts.map((piece) => {
        const sampled = { token: piece, bytes: [1], logprob: -1, top: [] }
        const detail = { ...of, ...(logprobs ? { logprobs: [sampled] } : {}) }
        return Object.keys(detail).length === 0 ? { text: piece } : { text: piece, detail }
      })
      return [
        ...thoughts.map((piece) => ({
          text: piece,
          detail: { ...of, part: { kind: "reasoning" as const } },
        })),
        ...content,
        ...calls.flatMap(({ name, pieces }, call) => [
          { text: "", detail: { ...of, part: { kind: "call" as const, call, name } } },
          ...pieces.map((piece) => ({
            text: piece,
            detail: { ...of, part: { kind: "arguments" as const, call } },
          })),
        ]),
      ]
    })

const requests = fc
  .record({ replies: fc.integer({ min: 1, max: 3 }), logprobs: fc.boolean(), usesFunctions: fc.boolean() })
  .chain((terms) =>
    fc.record({
      terms: fc.constant(terms),
      deltas: fc.tuple(
        ...Array.from({ length: terms.replies }, (_, reply) =>
          replyOf(reply, terms.logprobs, terms.usesFunctions ? 1 : 3),
        ),
      ),
      order: fc.infiniteStream(fc.nat(2)),
      finishes: fc.array(fc.constantFrom<GenerateFinish>("stop", "length", "tool_calls"), {
        minLength: terms.replies,
        maxLength: terms.replies,
      }),
    }),
  )

it("add up to the same message", () => {
  fc.assert(
    fc.property(requests, ({ deltas, finishes, order, terms }) => {
      const idsFrom = () => {
        const ids = new Map<string, number>()
        return (): string => {
          ids.set("n", (ids.get("n") ?? 0) + 1)
          return `call_${ids.get("n")}`
        }
      }
      const withIds = (): ChatReplyTerms => ({ ...terms, newCallId: idsFrom() })
      const stream = new ChatStream(head, withIds(), { usage: false, timing: () => ({}) }, started)
      const reply = new ChatReply(withIds())
      const queues = deltas.map((each) => [...each])
      let events = ""
      let frame = stream.first
      while (queues.some(({ length }) => length > 0)) {
        const queue = queues[order.next().value % queues.length]!
        const delta = queue.shift()
        if (delta === undefined) continue
        reply.take({ ...delta, completionTokens: 0 })
        // As TextStream does.
        if (delta.detail === undefined) {
          if (delta.text === "") continue
          events += frame.of(delta.text)
          frame = stream.next
          continue
        }
        const detailed = stream.detailed(delta.detail, delta.text, frame === stream.next)
        events += detailed
        if (detailed !== "" && (delta.detail.reply ?? 0) === 0) frame = stream.next
      }
      events += stream.last({
        finishReason: finishes[0]!,
        promptTokens: 3,
        completionTokens: 0,
        ...(terms.replies > 1 ? { finishReasons: finishes } : {}),
      })
      const choices = added(
        parseEventStream(events).map((data) => JSON.parse(data) as Chunk),
        terms.replies,
      )
      const record = JSON.parse(
        reply.record(head, finishes, {
          prompt_tokens: 3,
          completion_tokens: 0,
          total_tokens: 3,
          prompt_tokens_details: { cached_tokens: 1 },
          completion_tokens_details: { reasoning_tokens: 0 },
        }),
      ) as {
        choices: ReadonlyArray<{
          message: Message
          logprobs?: { content: ReadonlyArray<unknown> }
          finish_reason: string
        }>
      }
      for (const [index, { finish_reason, logprobs, message }] of record.choices.entries()) {
        const streamed = choices[index]!
        expect(streamed.finish_reason).toBe(finish_reason)
        expect(streamed.logprobs).toEqual(logprobs?.content ?? [])
        expect({ role: "assistant", ...streamed.message, content: streamed.message.content || null }).toEqual(
          {
            ...message,
            content: message.content || null,
          },
        )
      }
    }),
    { numRuns: runs(300, 10_000) },
  )
})
