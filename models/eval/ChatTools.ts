// Measures whether the built-in chat model calls tools sensibly: fixed requests with two to four tools each, greedy decoding,
// and the calls that each request should lead to.
import { readFileSync } from "node:fs"
import { isDeepStrictEqual } from "node:util"
import { Effect, Schema } from "effect"
import type { TextDelta, TextEngine, Tool } from "#engines/protocol/Engine.ts"
import { atLeast, figure, type Part } from "#harness/report/Figure.ts"
import { collector, greedy } from "./Engines.ts"

const JsonObject = Schema.Record(Schema.String, Schema.Json)

const Call = Schema.Struct({ name: Schema.String, arguments: JsonObject })

const groups = ["everyday", "held out", "no call"] as const

const ToolRequests = Schema.Struct({
  tools: Schema.Array(
    Schema.Struct({ name: Schema.String, description: Schema.String, parameters: JsonObject }),
  ),
  requests: Schema.Array(
    Schema.Struct({
      /**
       * `everyday`: values and wordings that were trained, as a whole or in parts; `held out`: values and wordings that were not;
       * `no call`: no tool fits.
       */
      group: Schema.Literals(groups),
      /** Names of the offered tools, in their order. */
      tools: Schema.Array(Schema.String),
      message: Schema.String,
      /** The right calls; empty if the model has to answer in plain text. */
      calls: Schema.Array(Call),
    }),
  ),
})

type Request = (typeof ToolRequests.Type)["requests"][number]

export const toolRequests = Schema.decodeUnknownSync(Schema.fromJsonString(ToolRequests))(
  readFileSync(new URL("./tools.json", import.meta.url), "utf8"),
)

const offered = ({ tools }: Request): ReadonlyArray<Tool> =>
  tools.flatMap((name) =>
    toolRequests.tools.filter((tool) => tool.name === name).map((tool) => ({ ...tool, strict: false })),
  )

/** The calls of a reply. Arguments that were cut are undefined. */
const callsOf = (deltas: ReadonlyArray<TextDelta>): ReadonlyArray<{ name: string; arguments: unknown }> => {
  const calls: Array<{ name: string; text: string }> = []
  for (const { detail, text } of deltas) {
    const part = detail?.part
    if (part?.kind === "call") calls.push({ name: part.name, text: "" })
    const last = calls.at(-1)
    if (part?.kind === "arguments" && last !== undefined) last.text += text
  }
  const parsed = (text: string): unknown => {
    try {
      return JSON.parse(text)
    } catch {
      return undefined
    }
  }
  return calls.map(({ name, text }) => ({ name, arguments: parsed(text) }))
}

/** Whether the right tools were called, and whether the arguments were right too. */
const judged = Effect.fnUntraced(function* (model: TextEngine, request: Request) {
  const out = collector<TextDelta>()
  yield* model.generate(
    {
      prompt: { turns: [{ role: "user", content: request.message }] },
      tools: { tools: offered(request), choice: "auto", parallel: true },
      maxTokens: 120,
      sampling: greedy,
      stop: [],
    },
    out,
  )
  const calls = callsOf(out.units)
  const names = (all: ReadonlyArray<{ name: string }>) => all.map(({ name }) => name)
  return {
    group: request.group,
    tools: isDeepStrictEqual(names(calls), names(request.calls)),
    calls: isDeepStrictEqual(calls, request.calls),
  }
})

export const toolSection = Effect.fnUntraced(function* (model: TextEngine) {
  const all = yield* Effect.forEach(toolRequests.requests, (request) => judged(model, request))
  const [everyday, heldOut, none] = groups.map((group) => all.filter((one) => one.group === group))
  const count = (what: string, of: typeof all = [], key: "tools" | "calls" = "calls", least?: number) =>
    figure(
      what,
      `of ${of.length}`,
      [of.filter((one) => one[key]).length],
      least === undefined ? undefined : atLeast(least),
    )
  return {
    title: "Chat: tools",
    method:
      "Fixed requests with two to four tools each, decoded greedily; the right calls are in models/eval/tools.json. Wordings and values of the held-out requests are not in the tables of the training text.",
    figures: [
      count("everyday requests: right calls", everyday, "calls", 9),
      count("held-out requests: right tools", heldOut, "tools"),
      count("held-out requests: right tools and arguments", heldOut),
      count("requests that no tool fits: no call", none),
    ],
  } satisfies Part
})
