// How long a language model takes to say whether the user's message has ended, and by how much that delays the answer: its first token
// with a question before, and without one. The conversation is held by a sequence, as in a conversation that goes on.
//
//   node bench/turns/questionsMain.ts [SIZE] [THREADS]     SIZE of `npm run bench -- sizes text`, default 0.5b; "built-in"
import { fileURLToPath } from "node:url"
import { Effect } from "effect"
import { llamaGguf } from "#engines/llama/model/LlamaGguf.ts"
import type { ChatTurn, TextDelta, TextEngine } from "#engines/protocol/Engine.ts"
import { percentile } from "#harness/figures/Statistics.ts"
import { RandomNumbers } from "../../models/eval/Conditions.ts"
import { collector, greedy } from "../../models/eval/Engines.ts"
import { textSizes, textWeights } from "../sizes/text/TextWeights.ts"

const [asked = "0.5b", threads = "2"] = process.argv.slice(2)
const size = textSizes.find((one) => one === asked)
const weights =
  size === undefined
    ? fileURLToPath(new URL("../../models/llama-demo/llama-demo-Q8_0.gguf", import.meta.url))
    : await textWeights(size)

const words =
  "the of house river answer green seven walk table morning please could find near water open".split(" ")
const random = new RandomNumbers(7)
const text = (count: number) =>
  Array.from({ length: count }, () => words[Math.floor(random.between(0, words.length))]).join(" ")

/** Milliseconds until the first token, or the answer to the question. */
const timeOf = Effect.fnUntraced(function* (
  model: TextEngine,
  turns: ReadonlyArray<ChatTurn>,
  question: boolean,
) {
  const out = collector<TextDelta>()
  const beganMs = performance.now()
  const { messageEnd } = yield* model.generate(
    {
      prompt: { turns },
      maxTokens: 1,
      sampling: greedy,
      stop: [],
      ...(question ? { messageEnd: { withinMs: 60_000 } } : {}),
    },
    out,
  )
  if (question && typeof messageEnd !== "object")
    return yield* Effect.die(new Error(`no answer: ${messageEnd}`))
  return performance.now() - beganMs
})

const median = (values: ReadonlyArray<number>, share = 0.5) => percentile(values, share).toFixed(1)

/** Large weights take seconds for what the built-in ones take milliseconds. */
const [instructions, rounds] = size === undefined ? [200, 12] : [40, 3]
const run = Effect.gen(function* () {
  const options = { contextTokens: 2_048, slots: 4 }
  const spec = { modelId: "m", adapter: "llama-gguf", files: { weights }, options, threads: Number(threads) }
  const model = yield* llamaGguf.acquire(spec)
  if (model.kind !== "text") return
  console.log(
    `${asked}, ${model.facts.summary}, ${threads} threads, instructions of ${instructions} words, ${rounds} rounds`,
  )
  const history: ReadonlyArray<ChatTurn> = [{ role: "system", content: text(instructions) }]
  const said = (content: string): ReadonlyArray<ChatTurn> => [...history, { role: "user", content }]
  yield* timeOf(model, said(text(2)), false)
  for (const length of [5, 12, 25]) {
    const [questions, after, without]: [Array<number>, Array<number>, Array<number>] = [[], [], []]
    for (let round = 0; round < rounds; round++) {
      const caption = text(length)
      questions.push(yield* timeOf(model, said(caption), true))
      after.push(yield* timeOf(model, said(`${caption}.`), false))
      without.push(yield* timeOf(model, said(`${text(length)}.`), false))
    }
    console.log(
      `${length} words: question p50 ${median(questions)} p95 ${median(questions, 0.95)} ms; first token of the answer p50 ${median(after)} ms after it, ${median(without)} ms without it`,
    )
  }
})

await Effect.runPromise(Effect.scoped(run))
