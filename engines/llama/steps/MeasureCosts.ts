// Measures how long native calls of each size take on this machine, once a model has loaded, so that the first prompt is
// cut well. Sizes that would take too long on a large model stay unmeasured; StepPlan learns them from requests.

import type { BatchItem, NativeContext, Sampler } from "../native/Native.ts"
import { CostCurve } from "./CostCurve.ts"
import type { StepCosts } from "./StepPlan.ts"

/** Milliseconds for measuring replies, and as many for measuring prompts. A guess: half a second of a load in total. */
const budgetMs = 250

/** Milliseconds. A call is repeated until this much was measured, because short calls vary; the minimum counts. */
const enoughMs = 5
const mostRepeats = 5

const sampling = { temperature: 0.7, topP: 1, topK: 0, frequencyPenalty: 0, presencePenalty: 0, seed: 1 }

/** Every token costs the same, and every vocabulary has a token 0. */
const tokens = (count: number): ReadonlyArray<number> => new Array<number>(count).fill(0)

/** Measures sizes in ascending order while the next one is expected to end within the budget. */
const fill = async (
  costs: CostCurve,
  sizes: ReadonlyArray<number>,
  call: (size: number) => Promise<void>,
): Promise<void> => {
  const begun = performance.now()
  for (const size of sizes) {
    if (performance.now() - begun + costs.expectedMs(size) > budgetMs && size !== sizes[0]) return
    let least = Number.POSITIVE_INFINITY
    let spent = 0
    for (let repeat = 0; repeat < mostRepeats && spent < enoughMs; repeat++) {
      const started = performance.now()
      await call(size)
      const elapsed = performance.now() - started
      least = Math.min(least, elapsed)
      spent += elapsed
    }
    costs.observe(size, least)
  }
}

const measureReplies = async (native: NativeContext, slots: number): Promise<CostCurve> => {
  const costs = new CostCurve(slots)
  const samplers: Array<Sampler> = []
  try {
    await fill(costs, costs.sizes, async (size) => {
      while (samplers.length < size) samplers.push(native.sampler(sampling))
      const drawing = samplers.slice(0, size)
      const items = drawing.map(
        (_, sequenceId): BatchItem => ({ sequenceId, position: 0, tokens: tokens(1), logits: true }),
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
  return costs
}

/** Tokens. About the size of a short chat message; smaller calls are rare. */
const smallestPrompt = 8

const measurePrompts = async (
  native: NativeContext,
  batchTokens: number,
  contextTokens: number,
): Promise<CostCurve> => {
  const costs = new CostCurve(batchTokens)
  const sizes = costs.sizes.filter((size) => size >= smallestPrompt && size < contextTokens)
  await fill(costs, sizes, async (size) => {
    try {
      await native.decode([{ sequenceId: 0, position: 0, tokens: tokens(size), logits: false }])
    } finally {
      native.clear(0)
    }
  })
  return costs
}

interface Sizes {
  readonly slots: number
  readonly batchTokens: number
  readonly contextTokens: number
}

export const measureCosts = async (native: NativeContext, sizes: Sizes): Promise<StepCosts> => ({
  replies: await measureReplies(native, sizes.slots),
  prompt: await measurePrompts(native, sizes.batchTokens, sizes.contextTokens),
})
