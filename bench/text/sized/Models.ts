// The generated weights as a catalog entry, and the requests that the sized sections send.

import { Random } from "#harness/random/Random.ts"
import { readWordList, wordsIn } from "../../sizes/text/Vocabulary.ts"
import { entry } from "../Models.ts"

export const sizedModel = "sized"

/** Sequences, and tokens of each; the same for the node and the floor. */
export const slots = 16
export const contextTokens = 2_048

/** llama.cpp's default: most tokens of one native evaluation; the same for the node and the floor. */
export const batchTokens = 512

/** Where the layers run: on the CPU, on an NVIDIA card, or where llama.cpp chooses. */
export type Gpu = "off" | "cuda" | "auto"

/** Without `threads` the entry leaves them to the node's default. */
export const sizedEntry = (weights: string, threads?: number, gpu: Gpu = "off") =>
  entry(sizedModel, "llama-gguf", {
    files: { weights: { source: weights } },
    options: { contextTokens, slots, ...(gpu === "off" ? {} : { gpu, gpuLayers: "max" }) },
    runtime: { load: "start", ...(threads === undefined ? {} : { threads }) },
  })

const words = wordsIn(readWordList())

/** A prompt of `tokens` tokens. Prompts with different numbers share no prefix. */
export const promptOf = (serial: number, tokens: number): string => {
  const random = new Random(serial, tokens)
  return Array.from({ length: tokens }, () => ` ${words[random.below(words.length)] ?? "fox"}`).join("")
}

/** Numbers for prompts that no other request of the run has used. */
export class Serials {
  #next = 1

  take(): number {
    return this.#next++
  }

  prompts(count: number, tokens: number): ReadonlyArray<string> {
    return Array.from({ length: count }, () => promptOf(this.take(), tokens))
  }
}

/** Without top_p, the whole vocabulary is sampled. The floor samples alike. */
export const sampling = { temperature: 0.7, topP: 1, topK: 0, seed: 7 } as const

/** Generated weights do not end a reply early, so it has exactly `maxTokens` tokens. */
export const sizedCompletion = (prompt: string, maxTokens: number) => ({
  model: sizedModel,
  stream: true,
  stream_options: { include_usage: true },
  prompt,
  max_tokens: maxTokens,
  temperature: sampling.temperature,
  top_p: sampling.topP,
  top_k: sampling.topK,
  seed: sampling.seed,
})

/** More tokens than the time of any window allows, within the context. */
export const unendingTokens = 1_500
