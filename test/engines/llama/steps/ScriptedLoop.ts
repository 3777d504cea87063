// A step loop on a native context in memory, replies that it makes, and a constraint written by hand.
import { expect } from "@effect/vitest"
import { Cause, Exit } from "effect"
import type { Constraint } from "#engines/grammar/Constraint.ts"
import { Vocabulary } from "#engines/llama/output/Vocabulary.ts"
import { DetailedReply, type DetailedTerms } from "#engines/llama/replies/DetailedReply.ts"
import { Guidance } from "#engines/llama/replies/Guidance.ts"
import { CostCurve } from "#engines/llama/steps/CostCurve.ts"
import type { Job, JobTerms, Outcome } from "#engines/llama/steps/Job.ts"
import type { SpareRows } from "#engines/llama/steps/SpareRows.ts"
import { StepLoop } from "#engines/llama/steps/StepLoop.ts"
import type { StepCosts } from "#engines/llama/steps/StepPlan.ts"
import { greedy, type TextOutlet, textOf, textOutlet } from "../../../support/engines/EngineHarness.ts"
import { hashed, type ScriptedNative, scriptedNative } from "./ScriptedNative.ts"

export const letters = "abcdefghijklmnopqrstuvwxyz"
/** The last token ends a reply. */
const endToken = letters.length
const vocabularySize = letters.length + 1
const vocabulary = new Vocabulary({
  size: vocabularySize,
  spelling: "plain",
  spelled: (token) => letters[token] ?? "<end>",
  attributes: (token) => (token === endToken ? 8 : 4),
  isEnd: (token) => token === endToken,
  shown: new Set(),
})
export const tokensOf = (text: string): ReadonlyArray<number> =>
  [...text].map((letter) => letters.indexOf(letter))

/** One of several letters, or letters that follow for certain. */
export type Part = { readonly oneOf: string } | { readonly certain: string }

/** A reply of these parts in their order, then the end. `find`: of each mask. */
const partsConstraint = (parts: ReadonlyArray<Part>, find: () => boolean): Constraint => {
  const allowed: Array<ReadonlyArray<number>> = parts.flatMap((part) =>
    "oneOf" in part ? [tokensOf(part.oneOf)] : tokensOf(part.certain).map((token) => [token]),
  )
  let at = 0
  const now = (): ReadonlyArray<number> => allowed[at] ?? [endToken]
  return {
    allows: (token) => now().includes(token),
    find,
    mask: (logits) => {
      for (let token = 0; token < logits.length; token++)
        if (!now().includes(token)) logits[token] = -Infinity
    },
    accept: (token) => {
      expect(now()).toContain(token)
      at++
    },
    forced: () => {
      const run: Array<number> = []
      for (let next = at; next < allowed.length && allowed[next]!.length === 1 && run.length < 64; next++)
        run.push(allowed[next]![0]!)
      return run
    },
    finished: () => at === allowed.length,
    complete: () => at === allowed.length,
  }
}

/** A machine whose calls cost the same at any size, and which is not learnt anew: calls of a scripted context take no time. */
class SteadyCost extends CostCurve {
  override expectedMs(): number {
    return 10
  }
  override observe(): void {}
}

const learntCosts = (slots: number): StepCosts => {
  const replies = new CostCurve(slots)
  const prompt = new CostCurve(64)
  replies.observe(1, 10)
  prompt.observe(16, 20)
  return { replies, prompt }
}

/** Costs under which replies always share calls. */
export const sharingCosts = (slots: number): StepCosts => ({
  replies: new SteadyCost(slots),
  prompt: new SteadyCost(64),
})

export const open = (
  native: ScriptedNative,
  slots: number,
  costs = learntCosts(slots),
  checkpointBytes = 0,
  spareRows?: SpareRows,
): StepLoop =>
  new StepLoop({
    native: native.native,
    slots,
    needsCheckpoints: false,
    checkpointBytes,
    costs,
    promptShare: 2 / 3,
    ...(spareRows === undefined ? {} : { spareRows }),
  })

export interface Asked {
  readonly prompt?: string
  readonly owner?: number
  readonly shared?: number
  readonly seed?: number
  readonly temperature?: number
  readonly maxTokens?: number
  readonly parts?: ReadonlyArray<Part>
  /** A slice of the work on a mask; true once it is found, as it is at once by default. */
  readonly find?: () => boolean
  readonly runs?: boolean
  readonly reply?: number
  readonly terms?: Partial<DetailedTerms>
}

export const termsOf = (asked: Asked, out: TextOutlet, tally = { tokens: 0 }): JobTerms => {
  const { maxTokens = 200, parts, reply = 0, runs = true, seed = 1, temperature = 1.2 } = asked
  const guidance =
    parts === undefined
      ? undefined
      : new Guidance({
          constraint: partsConstraint(parts, asked.find ?? (() => true)),
          runs,
          maxTokens,
          minTokens: 0,
          ends: vocabulary.ends,
          thinking: undefined,
        })
  const detailed: DetailedTerms = {
    stop: [],
    maxTokens,
    thought: undefined,
    out,
    reply,
    tally,
    prologue: undefined,
    guidance,
    parser: undefined,
    showsThinking: false,
    logprobs: undefined,
    ranked: false,
    ...asked.terms,
  }
  return {
    prompt: tokensOf(asked.prompt ?? "prompt"),
    spans: [],
    marks: [],
    owner: asked.owner,
    shared: asked.shared ?? 0,
    sampling: { ...greedy, temperature, seed },
    reply: new DetailedReply(detailed, vocabulary),
    out,
  }
}

export const outcomeOf = (loop: StepLoop, job: Job): Promise<Outcome> =>
  new Promise((resolve, reject) =>
    loop.run(job, (exit) => (Exit.isSuccess(exit) ? resolve(exit.value) : reject(Cause.squash(exit.cause)))),
  )

/** One whole reply. */
export const say = async (loop: StepLoop, asked: Asked) => {
  const out = textOutlet()
  const job = loop.open(termsOf(asked, out))
  const end = await outcomeOf(loop, job)
  await loop.release(job)
  return { text: textOf(out), end, out }
}

export const native = () => scriptedNative({ vocabularySize, predict: hashed(vocabularySize) })
