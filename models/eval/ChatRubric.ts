// Judges the built-in chat model by a written rubric: 300 answers to prompts that were never in its training text, decoded
// greedily. models/eval/chat.json has the prompts and the rule of each; all answers are written to models/eval/chat-answers.md.
import { readFileSync } from "node:fs"
import { Effect, Schema } from "effect"
import type { JsonObject } from "#domain/wire/Json.ts"
import type { ChatTurn, GenerateRequest, TextDelta, TextEngine } from "#engines/protocol/Engine.ts"
import { atLeast, figure, type Part } from "#harness/report/Figure.ts"
import { collector, greedy, toolResultTurns } from "./Engines.ts"

const JsonValue = Schema.Record(Schema.String, Schema.Json)

const RubricPrompt = Schema.Struct({
  group: Schema.String,
  system: Schema.optionalKey(Schema.String),
  /** What the user writes, and the name of a rule or, after a slash, a regular expression. Case is ignored. */
  turns: Schema.NonEmptyArray(Schema.Tuple([Schema.String, Schema.String])),
  /** A call that the model made before, and its result: the model has to say it. */
  tool: Schema.optionalKey(
    Schema.Struct({ name: Schema.String, arguments: JsonValue, result: Schema.String }),
  ),
  /** The answer is held to this JSON Schema, which the model does not see. */
  schema: Schema.optionalKey(JsonValue),
})

const Rubric = Schema.Struct({
  rules: Schema.Record(Schema.String, Schema.String),
  prompts: Schema.Array(RubricPrompt),
})

type RubricPrompt = typeof RubricPrompt.Type

export const rubric = Schema.decodeUnknownSync(Schema.fromJsonString(Rubric))(
  readFileSync(new URL("./chat.json", import.meta.url), "utf8"),
)

/** Groups of prompts in the order of the report, and what they are. */
export const rubricGroups: Readonly<Record<string, string>> = {
  first: "what people type first",
  talk: "small talk",
  self: "about itself",
  sums: "sums of numbers up to 100",
  facts: "facts that it was taught",
  tales: "stories, poems, jokes",
  beyond: "what it does not know or cannot do",
  commands: "commands and sentences of voice tests",
  everyday: "three conversations of ten turns",
  memory: "what the user said before",
  system: "system prompts",
  tools: "results of tools",
  forms: "answers in JSON",
}

/** Characters of markup that no answer in plain text needs, and what a tokenizer writes for broken text. */
export const markup = /[<>{}|[\]_\\�]/
const pirate = /\b(arr|ahoy|yo ho|matey)\b/i
const mostTokens = 160
/** Of a string in JSON, in characters. */
const short = 40

const stringsOf = (value: unknown): ReadonlyArray<string> =>
  typeof value === "string"
    ? [value]
    : typeof value === "object" && value !== null
      ? Object.values(value).flatMap(stringsOf)
      : []

const parsed = (text: string): unknown => {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** What is wrong with an answer in JSON, or undefined. */
const formFault = (text: string): string | undefined => {
  const value = parsed(text)
  if (value === undefined) return "no JSON"
  const strings = stringsOf(value)
  if (strings.some((one) => one.trim() === "")) return "empty value"
  return strings.some((one) => one.length > short) ? "long value" : undefined
}

/** A sentence that is said twice, if there is one. */
const repeated = (text: string): string | undefined => {
  const sentences = text.split(/[.!?\n]+/).map((one) => one.trim().toLowerCase())
  return sentences.find((one, at) => one.length > 12 && sentences.indexOf(one) !== at)
}

/** What is wrong with an answer by the rubric of models/llama-demo/README.md, or undefined if it is good. */
export const faultOf = (
  { schema, system }: Pick<RubricPrompt, "schema" | "system">,
  want: string,
  { ended, text }: { readonly ended: boolean; readonly text: string },
): string | undefined => {
  if (!ended) return "does not end"
  if (schema !== undefined) return formFault(text)
  if (markup.test(text)) return "markup"
  if (!/[.!?"]$/.test(text)) return "incomplete"
  if (pirate.test(text) && !/pirate/i.test(system ?? "")) return "pirate"
  if (repeated(text) !== undefined) return "repeats itself"
  const rule = want.startsWith("/") ? want.slice(1) : rubric.rules[want]
  if (rule === undefined) return `no rule ${want}`
  return new RegExp(rule, "i").test(text) ? undefined : "does not fit"
}

interface JudgedAnswer {
  readonly prompt: RubricPrompt
  readonly said: string
  readonly answer: string
  readonly fault: string | undefined
}

const reply = Effect.fnUntraced(function* (
  model: TextEngine,
  turns: ReadonlyArray<ChatTurn>,
  more: Pick<GenerateRequest, "format" | "tools">,
) {
  const out = collector<TextDelta>()
  const request = { prompt: { turns }, maxTokens: mostTokens, sampling: greedy, stop: [], ...more }
  const { finishReason } = yield* model.generate(request, out)
  return { ended: finishReason === "stop", text: out.units.map(({ text }) => text).join("") }
})

const judgedTurns = Effect.fnUntraced(function* (model: TextEngine, prompt: RubricPrompt) {
  const judged: Array<JudgedAnswer> = []
  const chat: Array<ChatTurn> =
    prompt.system === undefined ? [] : [{ role: "system", content: prompt.system }]
  const format =
    prompt.schema === undefined
      ? {}
      : { format: { kind: "schema", strict: true, schema: prompt.schema as JsonObject } as const }
  for (const [said, want] of prompt.turns) {
    chat.push({ role: "user", content: said })
    if (prompt.tool !== undefined) chat.push(...toolResultTurns(prompt.tool))
    const made = yield* reply(model, chat, format)
    chat.push({ role: "assistant", content: made.text })
    judged.push({ prompt, said, answer: made.text, fault: faultOf(prompt, want, made) })
  }
  return judged
})

/** The answers to all prompts, in their order. */
export const judgedAnswers = (model: TextEngine) =>
  Effect.map(
    Effect.forEach(rubric.prompts, (prompt) => judgedTurns(model, prompt)),
    (all) => all.flat(),
  )

export const rubricSection = (judged: ReadonlyArray<JudgedAnswer>): Part => {
  const good = (all: ReadonlyArray<JudgedAnswer>) => all.filter(({ fault }) => fault === undefined).length
  const counted = (what: string, all: ReadonlyArray<JudgedAnswer>, least?: number) =>
    figure(what, `of ${all.length}`, [good(all)], least === undefined ? undefined : atLeast(least))
  return {
    title: "Chat: unseen prompts",
    method:
      "300 prompts in models/eval/chat.json, decoded greedily and judged by the rubric above; all answers are in [models/eval/chat-answers.md](../eval/chat-answers.md).",
    figures: [
      counted("good answers", judged, 240),
      ...Object.entries(rubricGroups).map(([group, about]) =>
        counted(
          about,
          judged.filter(({ prompt }) => prompt.group === group),
        ),
      ),
    ],
  }
}

const cell = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " / ")

/** All answers as a page. */
export const answersPage = (judged: ReadonlyArray<JudgedAnswer>): string =>
  [
    "# Answers of llama-demo to 300 unseen prompts",
    "",
    "Written by `npm run models:eval -- --answers`: decoded greedily, judged by the rubric in [its model card](../llama-demo/README.md). The prompts and their rules are in [chat.json](chat.json).",
    ...Object.entries(rubricGroups).flatMap(([group, about]) => [
      "",
      `## ${about[0]!.toUpperCase()}${about.slice(1)}`,
      "",
      "| prompt | answer | |",
      "|---|---|---|",
      ...judged
        .filter(({ prompt }) => prompt.group === group)
        .map(({ answer, fault, prompt: { system, tool }, said }) => {
          const before = system === undefined ? "" : `(${system}) `
          const result = tool === undefined ? "" : ` (${tool.name}: ${tool.result})`
          return `| ${cell(before + said + result)} | ${cell(answer)} | ${fault ?? "good"} |`
        }),
    ]),
    "",
  ].join("\n")
