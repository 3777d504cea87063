// Edgewise's own native calls, one by one, in a process without a node: the duration of a call, and the parts of a step
// that sample tokens and turn them into text.
import { Effect } from "effect"
import { loadModel, type Model } from "#engines/llama/model/LoadedGguf.ts"
import { decodeOptions } from "#engines/llama/Options.ts"
import type { Sampling } from "#engines/protocol/Engine.ts"
import { serveCommands } from "../../support/CommandChannel.ts"
import { batchTokens, contextTokens, slots } from "./Models.ts"

interface Weights {
  readonly weights: string
  readonly threads: number
}

/** Loads the weights, runs `measure`, and frees their memory. */
const withModel = <A>({ threads, weights }: Weights, measure: (model: Model) => Promise<A>): Promise<A> =>
  Effect.gen(function* () {
    const options = yield* decodeOptions({ contextTokens, slots, batchTokens })
    const model = yield* loadModel(
      { modelId: "bench", adapter: "llama-gguf", files: { weights }, options, threads },
      options,
    )
    return yield* Effect.promise(() => measure(model))
  }).pipe(Effect.scoped, Effect.runPromise)

/** Ordinary tokens, no control tokens. */
const tokensFrom = (first: number, count: number): ReadonlyArray<number> =>
  Array.from({ length: count }, (_, at) => 1_000 + ((first + at * 7) % 100_000))

interface CallTimes {
  readonly tokens: number
  readonly elapsedMs: ReadonlyArray<number>
}

/** One call that evaluates `tokens` tokens inside of a prompt: no logits. */
const takeCall = async ({ stepped: { native } }: Model, tokens: number): Promise<number> => {
  native.clear(0)
  const startedMs = performance.now()
  await native.decode([{ sequenceId: 0, position: 0, tokens: tokensFrom(0, tokens), logits: false }])
  return performance.now() - startedMs
}

const takeCalls = async (
  model: Model,
  sizes: ReadonlyArray<number>,
  rounds: number,
): Promise<ReadonlyArray<CallTimes>> => {
  const times = sizes.map((tokens) => ({ tokens, elapsedMs: [] as Array<number> }))
  // The first call after loading pages the weights in.
  await takeCall(model, 8)
  for (let round = 0; round < rounds; round++)
    for (const { elapsedMs, tokens } of times) elapsedMs.push(await takeCall(model, tokens))
  return times
}

export interface StepParts {
  readonly decodeMs: number
  readonly sampleMs: number
  readonly textMs: number
}

/** Steps of `streams` replies: all decode in one call, all sample concurrently, each token is turned into text. */
const takeSteps = async (
  { stepped: { native }, vocabulary }: Model,
  { sampling, steps, streams }: StepLoad,
): Promise<ReadonlyArray<StepParts>> => {
  const samplers = Array.from({ length: streams }, (_, seed) => native.sampler({ ...sampling, seed }))
  for (let sequenceId = 0; sequenceId < streams; sequenceId++) native.clear(sequenceId)
  let next = samplers.map((_, stream) => tokensFrom(stream * 100, 8))
  let position = 0
  const parts: Array<StepParts> = []
  // The first step evaluates the prompts and is not counted.
  for (let step = 0; step <= steps; step++) {
    const items = next.map((tokens, sequenceId) => ({ sequenceId, position, tokens, logits: true }))
    position += items[0]?.tokens.length ?? 0
    const startedMs = performance.now()
    const rows = await native.decode(items)
    const decodedMs = performance.now()
    // The native side sorts the rows of a batch with prompts at the first draw, without a lock.
    const [first, ...others] = samplers.map((sampler, at) => () => sampler.sample(rows[at] ?? -1))
    const head = first === undefined ? [] : [await first()]
    const drawn = [...head, ...(await Promise.all(others.map((draw) => draw())))]
    const drawnMs = performance.now()
    for (const token of drawn) vocabulary.piece(token)
    const textMs = performance.now() - drawnMs
    if (step > 0) parts.push({ decodeMs: decodedMs - startedMs, sampleMs: drawnMs - decodedMs, textMs })
    next = drawn.map((token) => [token])
  }
  for (const sampler of samplers) sampler.dispose()
  return parts
}

interface StepLoad {
  readonly streams: number
  readonly steps: number
  readonly sampling: Sampling
}

const commands = {
  calls: ({
    rounds,
    sizes,
    ...weights
  }: Weights & { readonly sizes: ReadonlyArray<number>; readonly rounds: number }) =>
    withModel(weights, (model) => takeCalls(model, sizes, rounds)),

  /** For each load, the durations of the parts of its steps. */
  steps: ({ loads, ...weights }: Weights & { readonly loads: ReadonlyArray<StepLoad> }) =>
    withModel(weights, async (model) => {
      const found: Array<ReadonlyArray<StepParts>> = []
      for (const load of loads) found.push(await takeSteps(model, load))
      return found
    }),
}

export type NativeCommands = typeof commands

serveCommands(commands)
