// Whether the built-in chat model gives sensible answers: fixed prompts, greedy answers, and a rule for each prompt.
import { Effect } from "effect"
import type { ChatTurn, TextEngine } from "#engines/protocol/Engine.ts"
import { finding, type Section } from "../support/Findings.ts"
import { answer, loadWords } from "./Engines.ts"
import { type Prompt, prompts } from "./EvaluationSet.ts"

export const follows = ({ exactCase, never, rule }: Prompt, text: string): boolean => {
  const matches = (pattern: string) => new RegExp(pattern, exactCase ? "" : "i").test(text)
  return matches(rule) && (never === undefined || !matches(never))
}

/** The model answers every message; the last answer is checked. */
const converse = Effect.fnUntraced(function* (words: TextEngine, { system, turns }: Prompt) {
  const said: Array<ChatTurn> = system === undefined ? [] : [{ role: "system", content: system }]
  let last = ""
  for (const content of turns) {
    said.push({ role: "user", content })
    last = (yield* answer(words, said)).text
    said.push({ role: "assistant", content: last })
  }
  return last
})

/** Small talk of about 2,000 tokens after a name was mentioned, then questions. */
const small: ReadonlyArray<readonly [string, string]> = [
  ["What is 2 + 3?", "2 plus 3 is 5."],
  ["Name three fruits.", "Apple, banana and cherry."],
  ["What color is the sky?", "The sky is blue."],
  ["Tell me a story.", "Once upon a time there was a brave fox named Tom. Tom lived near a river. The end."],
]
const ROUNDS = 75

const afterLongTalk = Effect.fnUntraced(function* (words: TextEngine) {
  const turns: Array<ChatTurn> = [
    { role: "user", content: "My name is Anna." },
    { role: "assistant", content: "Nice to meet you, Anna!" },
  ]
  for (let round = 0; round < ROUNDS; round++) {
    const [question, reply] = small[round % small.length]!
    turns.push({ role: "user", content: question }, { role: "assistant", content: reply })
  }
  const ask = (content: string) => answer(words, [...turns, { role: "user", content }])
  const [capital, name] = [yield* ask("What is the capital of France?"), yield* ask("What is my name?")]
  return {
    promptTokens: capital.promptTokens,
    capital: /Paris/.test(capital.text),
    name: /Anna/.test(name.text),
  }
})

export const wordsSections = Effect.gen(function* () {
  const words = yield* loadWords
  const answers = yield* Effect.forEach(prompts, (prompt) => converse(words, prompt))
  const good = prompts.filter((prompt, at) => follows(prompt, answers[at] ?? "")).length
  const long = yield* afterLongTalk(words)
  const speed = yield* answer(words, [{ role: "user", content: "Tell me a story about a fox." }])
  const yes = (hit: boolean) => [hit ? 1 : 0]
  return [
    {
      title: "Words: sensible answers",
      method: "Fixed prompts, greedy; each has its rule in models/eval/prompts.json.",
      findings: [
        finding("answers that follow their rule", `of ${prompts.length}`, [good], {
          is: "at least",
          value: 0.8 * prompts.length,
        }),
        finding("prompt tokens of the long talk", "tokens", [long.promptTokens]),
        finding("after it, a capital is right", "of 1", yes(long.capital)),
        finding("after it, the name is still known", "of 1", yes(long.name)),
        finding("speed", "tokens/s", [speed.completionTokens / speed.computeSeconds]),
      ],
    },
  ] satisfies ReadonlyArray<Section>
})
