// What the next native call evaluates, so that prompts and running replies share the model: rounds of a call with
// tokens of a prompt, or of several short ones, then calls in which every running reply gets a token. Called by StepLoop before each call. Pure;
// knows numbers only.
//
// A call never mixes a prompt with replies or with another prompt. llama.cpp evaluates a batch in passes in which every
// sequence has the same number of tokens, so a mixed call takes as long as its parts, and the replies wait for all.
import type { CostCurve } from "./CostCurve.ts"
import { evenTake, PromptPace } from "./PromptPace.ts"
import { groupsMs, replyGroups } from "./ReplyGroups.ts"

/** Every so many calls the oldest prompt goes first, so that short prompts cannot starve a long one. A guess. */
const oldestFirstEvery = 4

export interface Work {
  /** Sequence id. */
  readonly id: number
  /** Admission order; lower is older. */
  readonly order: number
  /** Tokens waiting to be evaluated; 1 for a running reply. */
  readonly pending: number
  /** A reply under way, as opposed to a prompt. */
  readonly replying: boolean
  /** Of a reply: prompts of a lower admission order were already waiting when it began. */
  readonly beganBefore: number
  /** A prompt stops after this many tokens at the latest, so that a checkpoint can be taken there. */
  readonly pauseAfter: number | undefined
}

/** One native call: some tokens of one prompt, or one token of each of these replies, ids ascending. */
export type Step =
  | { readonly kind: "prompt"; readonly id: number; readonly take: number }
  | { readonly kind: "replies"; readonly ids: ReadonlyArray<number> }

/** What a native call takes: by the tokens of a prompt, and by the number of replies, their draws included. */
export interface StepCosts {
  readonly prompt: CostCurve
  readonly replies: CostCurve
}

export class StepPlan {
  readonly #costs: StepCosts
  readonly #pace: PromptPace
  /** Groups of the round under way that did not have their call yet. */
  #groups: ReadonlyArray<ReadonlyArray<number>> = []
  /** While prompts have their part of a round: the size of their calls and the time that is left. */
  #share: { readonly size: number; readonly leftMs: number } | undefined
  #promptCalls = 0

  /** `share`: see PromptPace. */
  constructor(options: { readonly share: number; readonly costs: StepCosts }) {
    this.#costs = options.costs
    this.#pace = new PromptPace({ share: options.share, costs: options.costs.prompt })
  }

  /** `undefined` where there is no work. */
  next(works: ReadonlyArray<Work>): Step | undefined {
    const replying = works.filter((work) => work.replying)
    const replies = idsOf(replying)
    const prompts = works.filter((work) => !work.replying)
    for (;;) {
      const [group, ...others] = this.#groups
      if (group === undefined) break
      this.#groups = others
      const ids = group.filter((id) => replies.includes(id))
      if (ids.length > 0) return { kind: "replies", ids }
    }
    const step = replies.length === 0 ? this.#promptAlone(prompts) : this.#promptBeside(prompts, replying)
    if (step !== undefined) return step
    const [first, ...others] = replyGroups(replies, this.#costs.replies)
    this.#groups = others
    return first === undefined ? undefined : { kind: "replies", ids: first }
  }

  /** The call took this long. For replies with drawing and delivering their tokens, for a prompt without. */
  observe(step: Step, elapsedMs: number): void {
    if (step.kind === "prompt") this.#costs.prompt.observe(step.take, elapsedMs)
    else this.#costs.replies.observe(step.ids.length, elapsedMs)
  }

  #promptAlone(prompts: ReadonlyArray<Work>): Step | undefined {
    this.#share = undefined
    return prompts.length === 0 ? undefined : this.#promptStep(this.#firstOf(prompts), this.#pace.nextAlone())
  }

  /** The first call of a round in any case, and further ones of short prompts as long as they fit into its time. */
  #promptBeside(prompts: ReadonlyArray<Work>, replies: ReadonlyArray<Work>): Step | undefined {
    const begun = this.#share
    this.#share = undefined
    if (prompts.length === 0) return undefined
    const { leftMs, size } = begun ?? this.#shareBeside(prompts, replies)
    const step = this.#promptStep(this.#firstOf(prompts), size)
    const elapsedMs = this.#costs.prompt.expectedMs(step.take)
    if (begun !== undefined && elapsedMs > leftMs) return undefined
    this.#share = { size, leftMs: leftMs - elapsedMs }
    return step
  }

  /** The prompt with the fewest tokens left, and now and then the oldest. */
  #firstOf(prompts: ReadonlyArray<Work>): Work {
    const oldestFirst = this.#promptCalls++ % oldestFirstEvery === 0
    return prompts.reduce((first, other) => {
      const earlier = (oldestFirst ? 0 : other.pending - first.pending) || other.order - first.order
      return earlier < 0 ? other : first
    })
  }

  #promptStep({ id, pending, pauseAfter }: Work, size: number): Extract<Step, { kind: "prompt" }> {
    let take = Math.min(evenTake(pending, size), pauseAfter ?? pending, this.#costs.prompt.largest)
    // A last call of one token would be rounded differently (see Slots.alwaysEvaluated).
    if (pending - take === 1 && take > 2) take--
    return { kind: "prompt", id, take }
  }

  #shareBeside(prompts: ReadonlyArray<Work>, replies: ReadonlyArray<Work>) {
    const { replies: costs } = this.#costs
    const repliesMs = groupsMs(replyGroups(idsOf(replies), costs), costs)
    if (isBurst(prompts, replies)) return this.#pace.inBurst(repliesMs)
    const size = this.#pace.nextBeside({ prompts: prompts.length, replies: replies.length, repliesMs })
    return { size, leftMs: this.#costs.prompt.expectedMs(size) }
  }
}

/** Ascending: only neighbouring sequences share a pass. */
const idsOf = (works: ReadonlyArray<Work>): ReadonlyArray<number> =>
  works.map(({ id }) => id).sort((a, b) => a - b)

/** Whether all of these prompts were waiting already when the first of the replies began. */
const isBurst = (prompts: ReadonlyArray<Work>, replies: ReadonlyArray<Work>): boolean => {
  const began = replies.reduce((first, { beganBefore }) => Math.min(first, beganBefore), Infinity)
  return prompts.every(({ order }) => order < began)
}
