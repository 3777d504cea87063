// Measures the sums of the built-in chat model: sums, differences and products in the wordings of the training text, decoded
// greedily. Right is an answer whose last number is the result.
import { Effect } from "effect"
import type { TextEngine } from "#engines/protocol/Engine.ts"
import { atLeast, figure, type Part } from "#harness/report/Figure.ts"
import { RandomNumbers } from "./Conditions.ts"
import { answer } from "./Engines.ts"

interface Sum {
  readonly question: string
  readonly result: number
}

const seed = 8
/** The largest number in a sum or difference. */
const largestNumber = 100

const drawn = (random: RandomNumbers, most: number): number =>
  Math.min(most, Math.floor(random.next() * (most + 1)))

const wordings: ReadonlyArray<(written: string) => string> = [
  (written) => `What is ${written}?`,
  (written) => `how much is ${written}`,
  (written) => `${written} =`,
]

const questions = (count: number, make: (random: RandomNumbers) => { written: string; result: number }) => {
  const random = new RandomNumbers(seed)
  return Array.from({ length: count }, (_, n): Sum => {
    const { result, written } = make(random)
    return { question: wordings[n % wordings.length]!(written), result }
  })
}

/** Two numbers up to 100, drawn evenly. */
const additions = questions(500, (random) => {
  const [a, b] = [drawn(random, largestNumber), drawn(random, largestNumber)]
  return { written: random.next() < 0.5 ? `${a} + ${b}` : `${a} plus ${b}`, result: a + b }
})
const differences = questions(200, (random) => {
  const [a, b] = [drawn(random, largestNumber), drawn(random, largestNumber)]
  const [more, less] = [Math.max(a, b), Math.min(a, b)]
  return { written: random.next() < 0.5 ? `${more} - ${less}` : `${more} minus ${less}`, result: more - less }
})
const products = Array.from({ length: 100 }, (_, n): Sum => {
  const [a, b] = [(n % 10) + 1, Math.floor(n / 10) + 1]
  return { question: `What is ${a} times ${b}?`, result: a * b }
})

const rightOnes = Effect.fnUntraced(function* (model: TextEngine, sums: ReadonlyArray<Sum>) {
  const answers = yield* Effect.forEach(sums, ({ question }) =>
    answer(model, [{ role: "user", content: question }]),
  )
  return sums.filter(({ result }, at) => answers[at]?.text.match(/\d+(?=\D*$)/)?.[0] === String(result))
    .length
})

export const sumsSection = Effect.fnUntraced(function* (model: TextEngine) {
  const row = Effect.fnUntraced(function* (what: string, sums: ReadonlyArray<Sum>, share: number) {
    return figure(
      what,
      `of ${sums.length}`,
      [yield* rightOnes(model, sums)],
      atLeast(Math.round(share * sums.length)),
    )
  })
  return {
    title: "Chat: sums",
    method: "Numbers drawn from a seed, three wordings, decoded greedily.",
    figures: [
      yield* row("sums of two numbers up to 100", additions, 0.99),
      yield* row("differences of two numbers up to 100", differences, 0.95),
      yield* row("products of 1 to 10", products, 0.95),
    ],
  } satisfies Part
})
