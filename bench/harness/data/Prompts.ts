// Prompts of a chosen length, made of the project's own sentences. Each begins with its number, so that no server can answer
// from the prefix of another one. Pure.
import { Random } from "../random/Random.ts"
import { questions, sentences } from "./Sentences.ts"

/** Sizes by name, words of a prompt: a question, a page, a long document. Guesses at what chats, agents and retrieval send. */
export const promptSizes = { short: 30, medium: 300, long: 1_500 } as const

export interface PromptSource {
  /** How the result names it. */
  readonly name: string
  /** The prompt of a request; the same for the same index. */
  readonly prompt: (index: number) => string
}

const pick = (random: Random, list: ReadonlyArray<string>): string => list[random.below(list.length)] ?? ""

/** At least this number of words; the last sentence is whole. */
export const promptOf = (words: number, seed: number, index: number): string => {
  const random = new Random(seed, index + 1)
  const parts = [`Request ${index}-${random.below(1_000_000)}.`, pick(random, questions)]
  let count = parts.join(" ").split(" ").length
  while (count < words) {
    const sentence = pick(random, sentences)
    parts.push(sentence)
    count += sentence.split(" ").length
  }
  return parts.join(" ")
}

export const sizedPrompts = (words: number, seed: number): PromptSource => ({
  name: `generated prompts of ${words} words`,
  prompt: (index) => promptOf(words, seed, index),
})

/** The sentence that a speech request says. */
export const spokenSentence = (seed: number, index: number): string =>
  pick(new Random(seed, index + 1), sentences)
