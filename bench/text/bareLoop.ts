// The floor of the text engine: node-llama-cpp's own documented loop on the same weights and nothing else.
// Knows nothing of edgewise.
import { getLlama, LlamaLogLevel } from "node-llama-cpp"

export interface DecodeLoad {
  readonly weights: string
  /** Sequences that are decoded side by side. */
  readonly streams: number
  readonly threads: number
  /** Tokens that each stream generates, reply after reply. */
  readonly tokens: number
  /** Plain text in front of each stream's number. */
  readonly prompt: string
}

export interface DecodeRate {
  readonly tokens: number
  readonly elapsedMs: number
  /** CPU time of the whole process, all threads. */
  readonly cpuMs: number
  readonly tokensPerSecond: number
}

/** Tokens of context for one stream, enough for any prompt of a bench. */
export const contextTokensFor = ({ tokens, prompt }: DecodeLoad): number => tokens + prompt.length + 64

/** A different seed for every reply of every stream. */
export const seedOf = (stream: number, reply: number): number => stream * 1000 + reply

/** Wall and CPU time of `run`, which returns the number of generated tokens. */
export const measured = async (run: () => Promise<number>): Promise<DecodeRate> => {
  const cpu = process.cpuUsage()
  const started = performance.now()
  const tokens = await run()
  const elapsedMs = performance.now() - started
  const { user, system } = process.cpuUsage(cpu)
  return { tokens, elapsedMs, cpuMs: (user + system) / 1000, tokensPerSecond: (tokens / elapsedMs) * 1000 }
}

/**
 * Tokens a second of `for await (const token of sequence.evaluate(...))` on `streams` sequences of one context;
 * each token is turned into text alone, as a server has to. The next reply follows when one ends,
 * so the evaluation of prompts is included.
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
