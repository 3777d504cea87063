// The yardstick of the text engine: node-llama-cpp's own documented loop on the same weights, nothing around it.
// Called by the bench harness and by hand; knows nothing of edgewise.
import { getLlama, LlamaLogLevel } from "node-llama-cpp"

export interface DecodeLoad {
  readonly weights: string
  /** Sequences that decode side by side. */
  readonly streams: number
  readonly threads: number
  /** Tokens each stream generates, reply after reply. */
  readonly tokens: number
  /** Plain text before each stream's own number. */
  readonly prompt: string
}

export interface DecodeRate {
  readonly tokens: number
  readonly elapsedMs: number
  /** Processor time of the whole process, all threads. */
  readonly cpuMs: number
  readonly tokensPerSecond: number
}

/** Tokens of context a stream needs, with room for any prompt a bench uses. */
export const contextTokensFor = ({ tokens, prompt }: DecodeLoad): number => tokens + prompt.length + 64

/** A seed of its own for every reply of every stream. */
export const seedOf = (stream: number, reply: number): number => stream * 1000 + reply

/** Wall and processor time of `run`, which returns how many tokens it generated. */
export const measured = async (run: () => Promise<number>): Promise<DecodeRate> => {
  const cpu = process.cpuUsage()
  const started = performance.now()
  const tokens = await run()
  const elapsedMs = performance.now() - started
  const { user, system } = process.cpuUsage(cpu)
  return { tokens, elapsedMs, cpuMs: (user + system) / 1000, tokensPerSecond: (tokens / elapsedMs) * 1000 }
}

/**
 * Tokens a second of `for await (const token of sequence.evaluate(...))` on `streams` sequences of one context,
 * each token turned into text one at a time, as any server has to. A reply that ends is followed by the next one,
 * so the evaluation of prompts is part of it.
 */
export const bareLoop = async (load: DecodeLoad, repeats = 1): Promise<ReadonlyArray<DecodeRate>> => {
  const llama = await getLlama({
    gpu: false,
    build: "never",
    logLevel: LlamaLogLevel.error,
    maxThreads: load.threads,
  })
  try {
    const model = await llama.loadModel({ modelPath: load.weights })
    const context = await model.createContext({
      contextSize: contextTokensFor(load),
      sequences: load.streams,
      threads: load.threads,
      batchSize: 512,
      flashAttention: false,
    })
    const stream = async (number: number): Promise<number> => {
      const sequence = context.getSequence()
      let tokens = 0
      let characters = 0
      for (let reply = 0; tokens < load.tokens; reply++) {
        const seed = seedOf(number, reply)
        await sequence.clearHistory()
        const prompt = model.tokenize(`${load.prompt}${seed}`)
        for await (const token of sequence.evaluate(prompt, { temperature: 0.7, seed, topK: 0, topP: 1 })) {
          characters += model.detokenize([token]).length
          if (++tokens >= load.tokens) break
        }
      }
      await sequence.dispose()
      return characters >= 0 ? tokens : 0
    }
    const streams = Array.from({ length: load.streams }, (_, seed) => seed)
    const rates: Array<DecodeRate> = []
    for (let repeat = 0; repeat < repeats; repeat++)
      rates.push(
        await measured(async () => {
          const counts = await Promise.all(streams.map(stream))
          return counts.reduce((sum, count) => sum + count, 0)
        }),
      )
    return rates
  } finally {
    await llama.dispose()
  }
}
