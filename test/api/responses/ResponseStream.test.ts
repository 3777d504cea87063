// The events of any sequence of deltas, also of ones that no engine should send: they obey the rules of order, and what they
// add up to is the reply in the last event and the reply that is sent whole.
import { expect, it } from "@effect/vitest"
import { Clock, Effect } from "effect"
import fc from "fast-check"
import { OutputItems } from "#api/responses/OutputItems.ts"
import { ResponseRecord } from "#api/responses/ResponseRecord.ts"
import { ResponseStream } from "#api/responses/ResponseStream.ts"
import { EngineFailed } from "#domain/wire/Errors.ts"
import type { DeltaDetail, GenerateFinish, TextDelta } from "#engines/protocol/Text.ts"
import {
  addedUp,
  type OutputItem,
  type ResponseReply,
  responseEvents,
} from "../../support/clients/ResponseEvents.ts"
import { runs } from "../../support/groups/Runs.ts"

const text = fc.string({ unit: "binary", maxLength: 6 })
const number = fc.nat(2)

const detail: fc.Arbitrary<DeltaDetail | undefined> = fc.oneof(
  { weight: 3, arbitrary: fc.constant(undefined) },
  fc.constant({ part: { kind: "reasoning" as const } }),
  fc.record({
    part: fc.record({ kind: fc.constant("call" as const), call: number, name: fc.constantFrom("f", "g") }),
  }),
  {
    weight: 2,
    arbitrary: fc.record({ part: fc.record({ kind: fc.constant("arguments" as const), call: number }) }),
  },
  fc.record({
    logprobs: fc.array(
      fc.record({
        token: text,
        bytes: fc.constant([1]),
        logprob: fc.constantFrom(-1, Number.NEGATIVE_INFINITY),
        top: fc.constant([]),
      }),
      { maxLength: 2 },
    ),
  }),
)

const deltas = fc.array(
  fc.record({ text, detail }).map(
    ({ detail, text }): TextDelta => ({
      text: detail?.part?.kind === "call" ? "" : text,
      completionTokens: 1,
      ...(detail === undefined ? {} : { detail }),
    }),
  ),
  { maxLength: 12 },
)

const echo = {
  background: false,
  instructions: null,
  max_output_tokens: null,
  metadata: {},
  parallel_tool_calls: true,
  previous_response_id: null,
  service_tier: "default",
  store: false,
  temperature: 1,
  text: { format: { type: "text" } },
  tool_choice: "auto",
  tools: [],
  top_logprobs: 0,
  top_p: 1,
  truncation: "disabled",
  user: null,
} as const
const started = { promptTokens: 3, cachedTokens: 1 }
const clock = Effect.runSync(Clock.Clock)

const recordOf = (summary: boolean) =>
  new ResponseRecord(
    { id: "resp_1", created_at: 1, model: "m" },
    { ...echo, reasoning: { effort: null, summary: summary ? "auto" : null } },
  )
const ids = () => {
  let next = 0
  return () => String(next++)
}

const streamed = (given: ReadonlyArray<TextDelta>, summary: boolean, logprobs: boolean) => {
  const stream = new ResponseStream({
    record: recordOf(summary),
    summary,
    logprobs,
    newId: ids(),
    started,
    clock,
    timing: () => ({}),
  })
  const events = given.map(({ detail, text }) =>
    detail === undefined ? (text === "" ? "" : stream.next.of(text)) : stream.detailed(detail, text),
  )
  return { stream, events: stream.opening + events.join("") }
}

const cases = { deltas, summary: fc.boolean(), logprobs: fc.boolean() }
const finishes = fc.constantFrom<GenerateFinish>("stop", "length", "tool_calls")

it("obey the order, and add up to the reply", () => {
  fc.assert(
    fc.property(fc.record({ ...cases, finish: finishes }), ({ deltas, finish, logprobs, summary }) => {
      const { events, stream } = streamed(deltas, summary, logprobs)
      const end = { finishReason: finish, promptTokens: 3, completionTokens: deltas.length }
      const reply = addedUp(responseEvents(events + stream.last(end)), summary)

      const output = new OutputItems(ids(), logprobs)
      for (const delta of deltas) output.take(delta)
      output.end(finish)
      const whole = JSON.parse(
        recordOf(summary).of({ status: "completed", items: output.items }),
      ) as ResponseReply
      expect(reply.output).toEqual(whole.output)

      const texts = (type: OutputItem["type"]) =>
        reply.output
          .filter((item) => item.type === type)
          .map(({ content = [], summary = [], ...item }) =>
            type === "function_call"
              ? item.arguments
              : [...content, ...summary].map(({ text }) => text).join(""),
          )
          .join("")
      const sent = (kind: string) =>
        deltas
          .filter(({ detail }) => (detail?.part?.kind ?? "text") === kind)
          .map(({ text }) => text)
          .join("")
      expect(texts("message")).toBe(sent("text"))
      expect(texts("reasoning")).toBe(sent("reasoning"))
      const calls = deltas.filter(({ detail }) => detail?.part?.kind === "call").length
      expect(reply.output.filter(({ type }) => type === "function_call").length).toBe(calls)

      const statuses = reply.output.map(({ status }) => status)
      expect(statuses.slice(0, -1).every((status) => status === "completed")).toBe(true)
      expect(reply.status).toBe(finish === "length" ? "incomplete" : "completed")
      if (statuses.length > 0) expect(statuses.at(-1)).toBe(reply.status)
      if (finish !== "length") expect(reply.output.some(({ type }) => type !== "reasoning")).toBe(true)
    }),
    { numRuns: runs(500, 10_000) },
  )
})

it("of a failed generation end with the error and the failed reply", () => {
  fc.assert(
    fc.property(fc.record(cases), ({ deltas, logprobs, summary }) => {
      const { events, stream } = streamed(deltas, summary, logprobs)
      const all = responseEvents(
        events + stream.failed(new EngineFailed({ model: "m", reason: "crashed", detail: "" })),
      )
      expect(all.map(({ sequence_number }) => sequence_number)).toEqual(all.map((_, at) => at))
      const [error, failed] = all.slice(-2)
      expect([error?.type, failed?.type]).toEqual(["error", "response.failed"])
      const { output, ...reply } = failed?.response as ResponseReply
      expect(reply).toMatchObject({ status: "failed", usage: null, error: { message: error?.message } })
      expect(output.slice(0, -1).every(({ status }) => status === "completed")).toBe(true)
      if (output.length > 0) expect(output.at(-1)?.status).toBe("incomplete")
    }),
    { numRuns: runs(200, 2_000) },
  )
})
