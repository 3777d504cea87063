// Measures whether the built-in chat model gives sensible answers: fixed prompts, greedy decoding, and a rule for each prompt.
import { Effect } from "effect"
import type { ChatTurn, TextEngine } from "#engines/protocol/Engine.ts"
import { atLeast, figure, type Part } from "#harness/report/Figure.ts"
import { judgedAnswers, rubricSection } from "./ChatRubric.ts"
import { sumsSection } from "./ChatSums.ts"
import { toolSection } from "./ChatTools.ts"
import { answer, loadChatModel } from "./Engines.ts"
import { type Prompt, prompts } from "./EvaluationSet.ts"

/** Whether an answer matches the rule of its prompt. */
export const follows = ({ exactCase, never, rule }: Prompt, text: string): boolean => {
  const matches = (pattern: string) => new RegExp(pattern, exactCase ? "" : "i").test(text)
  return matches(rule) && (never === undefined || !matches(never))
}

/** The model answers every message; the last answer is checked. */
const converse = Effect.fnUntraced(function* (model: TextEngine, { messages, system }: Prompt) {
  const chat: Array<ChatTurn> = system === undefined ? [] : [{ role: "system", content: system }]
  let last = ""
  for (const content of messages) {
    chat.push({ role: "user", content })
    last = (yield* answer(model, chat)).text
    chat.push({ role: "assistant", content: last })
  }
  return last
})

/** Questions and answers that are repeated to fill a chat with about 2,000 tokens. */
const fillers: ReadonlyArray<readonly [string, string]> = [
  ["What is 2 + 3?", "2 plus 3 is 5."],
  ["Name three fruits.", "Apple, banana and cherry."],
  ["What color is the sky?", "The sky is blue."],
  ["Tell me a story.", "Once upon a time there was a brave fox named Tom. Tom lived near a river. The end."],
]
const rounds = 75

/** Mentions a name, then the fillers, then asks for a capital and for the name. */
const afterLongChat = Effect.fnUntraced(function* (model: TextEngine) {
  const messages: Array<ChatTurn> = [
    { role: "user", content: "My name is Anna." },
    { role: "assistant", content: "Nice to meet you, Anna!" },
  ]
  for (let round = 0; round < rounds; round++) {
    const [question, reply] = fillers[round % fillers.length]!
    messages.push({ role: "user", content: question }, { role: "assistant", content: reply })
  }
  const ask = (content: string) => answer(model, [...messages, { role: "user", content }])
  const [capital, name] = [yield* ask("What is the capital of France?"), yield* ask("What is my name?")]
  return {
    promptTokens: capital.promptTokens,
    capital: /Paris/.test(capital.text),
    name: /Anna/.test(name.text),
  }
})

export const chatSections = Effect.gen(function* () {
  const model = yield* loadChatModel
  const answers = yield* Effect.forEach(prompts, (prompt) => converse(model, prompt))
  const good = prompts.filter((prompt, at) => follows(prompt, answers[at] ?? "")).length
  const long = yield* afterLongChat(model)
  const speed = yield* answer(model, [{ role: "user", content: "Tell me a story about a fox." }])
  const oneIf = (isRight: boolean) => [isRight ? 1 : 0]
  return [
    {
      title: "Chat: sensible answers",
      method: "Fixed prompts, decoded greedily; each has its rule in models/eval/prompts.json.",
      figures: [
        figure(
          "answers that follow their rule",
          `of ${prompts.length}`,
          [good],
          atLeast(0.8 * prompts.length),
        ),
        figure("prompt tokens of the long chat", "tokens", [long.promptTokens]),
        figure("a capital is right after the long chat", "of 1", oneIf(long.capital)),
        figure("the name is right after the long chat", "of 1", oneIf(long.name)),
        figure("speed", "tokens/s", [speed.completionTokens / speed.computeSeconds]),
      ],
    },
    rubricSection(yield* judgedAnswers(model)),
    yield* sumsSection(model),
    yield* toolSection(model),
  ] satisfies ReadonlyArray<Part>
})
