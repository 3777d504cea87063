// The floor of the sized sections: node-llama-cpp's documented interface on the same weights, threads, batch and
// context, in a process without HTTP. Knows nothing of edgewise's engine.
import {
  getLlama,
  type LlamaContext,
  type LlamaContextSequence,
  LlamaLogLevel,
  type LlamaModel,
} from "node-llama-cpp"
import { serveCommands } from "../../support/CommandChannel.ts"
import { batchTokens, contextTokens, type Gpu, sampling, slots } from "./Models.ts"

interface Opened {
  readonly model: LlamaModel
  readonly context: LlamaContext
}

let opened: Promise<Opened> | undefined

interface Where {
  readonly weights: string
  readonly threads: number
  readonly gpu: Gpu
}

const open = async ({ gpu, threads, weights }: Where): Promise<Opened> => {
  const onGpu = gpu !== "off"
  const llama = await getLlama({
    gpu: onGpu ? gpu : false,
    build: "never",
    logLevel: LlamaLogLevel.error,
    maxThreads: threads,
  })
  const model = await llama.loadModel({ modelPath: weights, ...(onGpu ? { gpuLayers: "max" } : {}) })
  const context = await model.createContext({
    contextSize: contextTokens,
    sequences: slots,
    threads,
    batchSize: batchTokens,
    // On a GPU the library's choice, as in the engine.
    flashAttention: onGpu ? "auto" : false,
  })
  return { model, context }
}

const theOpened = (): Promise<Opened> => opened ?? Promise.reject(new Error("no weights are open"))

/** Generates from `prompt` until `wants` returns false; each token is turned into text alone, as a server does. */
const generate = async (
  { model }: Opened,
  sequence: LlamaContextSequence,
  prompt: string,
  wants: (tokensSoFar: number) => boolean,
): Promise<void> => {
  let tokens = 0
  for await (const token of sequence.evaluate(model.tokenize(prompt), sampling)) {
    model.detokenize([token])
    if (!wants(++tokens)) break
  }
}

/** Runs all prompts concurrently, each on a sequence of its own. */
const sideBySide = async (
  prompts: ReadonlyArray<string>,
  wants: (stream: number, tokensSoFar: number) => boolean,
): Promise<void> => {
  const bare = await theOpened()
  const sequences = prompts.map(() => bare.context.getSequence())
  await Promise.all(
    prompts.map((prompt, stream) =>
      generate(bare, sequences[stream]!, prompt, (tokens) => wants(stream, tokens)),
    ),
  )
  for (const sequence of sequences) await sequence.dispose()
}

const commands = {
  open: async (where: Where) => {
    opened = open(where)
    await opened
  },

  /** Milliseconds until each prompt's first token; every reply has `tokens` tokens. */
  firstTokens: async ({
    prompts,
    tokens,
  }: {
    readonly prompts: ReadonlyArray<string>
    readonly tokens: number
  }): Promise<ReadonlyArray<number>> => {
    const firstMs: Array<number> = []
    const startedMs = performance.now()
    await sideBySide(prompts, (stream, soFar) => {
      if (soFar === 1) firstMs[stream] = performance.now() - startedMs
      return soFar < tokens
    })
    return firstMs
  },

  /** Tokens a second of all replies together, for `windowMs` from the moment when each has its first token. */
  replies: async ({
    prompts,
    windowMs,
  }: {
    readonly prompts: ReadonlyArray<string>
    readonly windowMs: number
  }): Promise<number> => {
    let begun = 0
    let startedMs = Number.POSITIVE_INFINITY
    let endedMs: number | undefined
    let tokens = 0
    await sideBySide(prompts, (_stream, soFar) => {
      const nowMs = performance.now()
      if (soFar === 1 && ++begun === prompts.length) startedMs = nowMs
      else if (nowMs > startedMs && endedMs === undefined) tokens++
      if (nowMs - startedMs >= windowMs) endedMs ??= nowMs
      return endedMs === undefined
    })
    return (tokens / ((endedMs ?? Number.NaN) - startedMs)) * 1000
  },
}

export type BareCommands = typeof commands

serveCommands(commands)
