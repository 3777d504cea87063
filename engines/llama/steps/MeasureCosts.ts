// Measures how long native calls of each size take on this machine, in a moment without requests, so that prompts are cut well.
// Sizes that would take too long on a large model stay unmeasured; StepPlan learns them from requests, and the others too until then.

import type { CallCosts, CallDurations } from "#domain/threads/CallCosts.ts"
import type { BatchItem, NativeContext, Sampler } from "../native/Native.ts"
import { CostCurve } from "./CostCurve.ts"
import { Wanted } from "./StepThreads.ts"

/** Milliseconds for measuring replies, and as many for measuring prompts. A guess: a request ends the measurement after the running call. */
const budgetMs = 1_000

/** Milliseconds. A call is repeated until this much was measured, because short calls vary; the minimum counts. */
const enoughMs = 5
const mostRepeats = 5

const sampling = { temperature: 0.7, topP: 1, topK: 0, frequencyPenalty: 0, presencePenalty: 0, seed: 1 }

/** Every token costs the same, and every vocabulary has a token 0. */
const tokens = (count: number): ReadonlyArray<number> => new Array<number>(count).fill(0)

/** Measures sizes in ascending order while the next one is expected to end within the budget. */
const measured = async (
  sizes: ReadonlyArray<number>,
  isWanted: () => boolean,
  call: (size: number) => Promise<void>,
): Promise<CallDurations> => {
  const costs = new CostCurve(sizes.at(-1) ?? 1)
  const durations: Array<readonly [number, number]> = []
  const begun = performance.now()
  for (const size of sizes) {
    if (performance.now() - begun + costs.quietMs(size) > budgetMs && size !== sizes[0]) break
    let least = Number.POSITIVE_INFINITY
    let spent = 0
    for (let repeat = 0; repeat < mostRepeats && spent < enoughMs; repeat++) {
      if (isWanted()) throw new Wanted()
      const started = performance.now()
      await call(size)
      const elapsed = performance.now() - started
      least = Math.min(least, elapsed)
      spent += elapsed
    }
    costs.observe(size, least)
    durations.push([size, least])
  }
  return durations
}

const measureReplies = async (
  native: NativeContext,
  slots: number,
  sequences: ReadonlyArray<number>,
  isWanted: () => boolean,
): Promise<CallDurations> => {
  const sizes = new CostCurve(slots).sizes.filter((size) => size <= sequences.length)
  const samplers: Array<Sampler> = []
  try {
    return await measured(sizes, isWanted, async (size) => {
      while (samplers.length < size) samplers.push(native.sampler(sampling))
      const drawing = samplers.slice(0, size)
      const items = drawing.map(
        (_, at): BatchItem => ({ sequenceId: sequences[at]!, position: 0, tokens: tokens(1), logits: true }),
      )
      try {
        const rows = await native.decode(items)
        await Promise.all(drawing.map((sampler, at) => sampler.sample(rows[at]!)))
      } finally {
        for (const { sequenceId } of items) native.clear(sequenceId)
      }
    })
  } finally {
    for (const sampler of samplers) sampler.dispose()
  }
}

/** Tokens. About the size of a short chat message; smaller calls are rare. */
const smallestPrompt = 8

const measurePrompts = (
  native: NativeContext,
  batchTokens: number,
  contextTokens: number,
  sequenceId: number,
  isWanted: () => boolean,
): Promise<CallDurations> => {
  const { sizes: all } = new CostCurve(batchTokens)
  const sizes = all.filter((size) => size >= smallestPrompt && size < contextTokens)
  return measured(sizes, isWanted, async (size) => {
    try {
      await native.decode([{ sequenceId, position: 0, tokens: tokens(size), logits: false }])
    } finally {
      native.clear(sequenceId)
    }
  })
}

interface Sizes {
  readonly slots: number
  readonly batchTokens: number
  readonly contextTokens: number
}

/**
 * `sequences`: neighbours that are empty, at least one. No other call may run.
 * @throws Wanted once `isWanted` has returned true, after the running call
 */
export const measureCosts = async (
  native: NativeContext,
  { batchTokens, contextTokens, slots }: Sizes,
  sequences: ReadonlyArray<number>,
  isWanted: () => boolean,
): Promise<CallCosts> => ({
  replies: await measureReplies(native, slots, sequences, isWanted),
  prompt: await measurePrompts(native, batchTokens, contextTokens, sequences[0] ?? 0, isWanted),
})
