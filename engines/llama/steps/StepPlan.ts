// Decides what the next native call evaluates, so that prompts and running replies share the model. A round is a call with
// tokens of a prompt (or several calls, for short prompts), then calls for the replies that have a run of tokens, then calls
// in which every reply whose next token is to be sampled gets one. Pure.
//
// A run is several tokens that follow for certain. A short one goes through the common calls token by token, without sampling in
// between. For a reply without neighbours its length alone decides: calls with one row and with several rows round
// differently, so if durations decided, equal seeds could give different texts.
//
// Common calls are planned after the runs, because most runs end with a token to be sampled: a call for all replies costs
// little more than one for half of them.
//
// What a round has for prompts is time that was measured, not expected: it ends when their calls have taken so long, and it is so many times
// what the replies' calls of the last rounds took. So prompts get their share however wrong the expected durations are.
//
// A call never mixes a prompt with replies or with another prompt. llama.cpp evaluates a batch in passes in which every
// sequence has the same number of tokens, so a mixed call takes as long as its parts, and the replies would wait for all. Equally long parts
// of several prompts in one call cost 12 to 25 % more a token than as many of one prompt (0.2 B, Q8_0, two threads, AVX2, 2026-11), and
// the first of these prompts would wait for its first token as long as the last.
import type { CostCurve } from "./CostCurve.ts"
import { evenTake, PromptPace, type RoundPart } from "./PromptPace.ts"
import { groupsMs, neighbours, replyGroups } from "./ReplyGroups.ts"
import { groupsWithRuns, type RunGroup, runGroups } from "./RunGroups.ts"
import { SpareRows } from "./SpareRows.ts"

/** Every so many calls the oldest prompt goes first, so that short prompts cannot starve a long one. A guess. */
const oldestFirstEvery = 4

/**
 * Where neighbours have several calls, a common call for all of them is tried now and then, so that it is known what that takes now: after calls
 * that took this many times what the trial is expected to lose. A guess: it costs 3 % of the tokens, and a wrong expectation is found out.
 */
const worthOfTrial = 32
/** A trial is expected to lose at least this share of what the several calls take. A guess. */
const leastLost = 1 / 2

/** Tokens of a run that is not evaluated token by token. A guess: 4 tokens in a call cost about as much as 2 calls with one. */
const leastRun = 4

/**
 * Most share of the time for prompts with pictures: their towers take most of the time until the first token, so slower reading
 * hardly delays it, and gaps of the replies beside them stay at twice the usual ones. A guess.
 */
const mostForPictures = 1 / 2

export interface Work {
  /** Sequence id. */
  readonly id: number
  /** Admission order; lower is older. */
  readonly order: number
  /** Tokens waiting to be evaluated; for a running reply 1, or more if it has a run. */
  readonly pending: number
  /** True for a reply that has begun, false for a prompt. */
  readonly replying: boolean
  /** For a reply: prompts of a lower admission order were already waiting when it began. */
  readonly beganBefore: number
  /** For a prompt: it has pictures. */
  readonly pictured?: boolean
  /** Most tokens of a prompt to evaluate now, so that a checkpoint can be taken there. */
  readonly pauseAfter: number | undefined
}

/** One native call: tokens of one prompt, or equally many tokens of each of these replies, ids ascending. */
export type Step =
  | { readonly kind: "prompt"; readonly id: number; readonly take: number }
  | { readonly kind: "replies"; readonly ids: ReadonlyArray<number>; readonly take: number }

/** Duration of a native call: by prompt tokens, and by the number of replies, sampling included. */
export interface StepCosts {
  readonly prompt: CostCurve
  readonly replies: CostCurve
}

/** The prompts' part of a round that has begun. */
interface BegunPart extends RoundPart {
  tokens: number
  /** Measured; of the last call what is expected, until it is measured. */
  spentMs: number
  /** Of the call that is not measured yet. */
  expectedMs: number
}

/**
 * Whether a round has no time left for `take` more tokens, by what those before them took. At least half of its time is used, because
 * small calls cost more a token than the next one may.
 */
const isSpent = ({ budgetMs, spentMs, tokens }: BegunPart, take: number): boolean =>
  spentMs >= budgetMs / 2 && spentMs * (1 + take / tokens) > budgetMs

interface StepPlanOptions {
  readonly share: number
  readonly costs: StepCosts
  readonly spareRows?: SpareRows | undefined
}

export class StepPlan {
  readonly #costs: StepCosts
  readonly #pace: PromptPace
  readonly #picturePace: PromptPace
  readonly #spareRows: SpareRows
  /** Runs of the present round that still wait for their call. */
  #runs: Array<RunGroup> = []
  /** The same for common calls; undefined until the runs are evaluated. */
  #groups: Array<ReadonlyArray<number>> | undefined = []
  #part: BegunPart | undefined
  /** Milliseconds that the replies' calls of the last two rounds took, the newest last. */
  #rounds: ReadonlyArray<number> = []
  #promptCalls = 0
  /** Milliseconds of common calls since the last trial. */
  #apartMs = 0

  /** `share`: see PromptPace. */
  constructor({ costs, share, spareRows = new SpareRows(costs.replies) }: StepPlanOptions) {
    this.#costs = costs
    this.#pace = new PromptPace({ share, costs: costs.prompt })
    this.#picturePace = new PromptPace({ share: Math.min(share, mostForPictures), costs: costs.prompt })
    this.#spareRows = spareRows
  }

  /** The next call; undefined if there is no work. */
  next(works: ReadonlyArray<Work>): Step | undefined {
    const replying = works.filter((work) => work.replying)
    const left = this.#nextOfRound(replying)
    if (left !== undefined) return left
    const prompts = works.filter((work) => !work.replying)
    const step = replying.length === 0 ? this.#promptAlone(prompts) : this.#promptBeside(prompts, replying)
    if (step !== undefined) return step
    if (replying.length === 0) return undefined
    this.#rounds = [...this.#rounds.slice(-1), 0]
    this.#runs = runGroups(replying.filter(isRun).sort(byId), replying.length, this.#costs)
    this.#groups = undefined
    return this.#nextOfRound(replying)
  }

  #nextOfRound(replying: ReadonlyArray<Work>): Step | undefined {
    const run = this.#nextRun(replying)
    if (run !== undefined) return run
    this.#groups ??= this.#commonGroups(replying)
    return this.#nextGroup(replying)
  }

  #commonGroups(replying: ReadonlyArray<Work>): Array<ReadonlyArray<number>> {
    const { replies: costs } = this.#costs
    const ids = idsOf(replying.filter((work) => !isRun(work)))
    const groups = groupsWithRuns(ids, replying.filter(isRun), this.#costs)
    const together = neighbours(groups.flat())
    if (together.length === groups.length) return groups
    const latelyMs = (size: number): number => costs.latelyMs(size)
    const apartMs = groupsMs(groups, latelyMs)
    const lostMs = Math.max(leastLost * apartMs, groupsMs(together, latelyMs) - apartMs)
    if (this.#apartMs < worthOfTrial * lostMs) return groups
    this.#apartMs = 0
    return together
  }

  #nextRun(replying: ReadonlyArray<Work>): Step | undefined {
    for (let run = this.#runs.shift(); run !== undefined; run = this.#runs.shift()) {
      const { ids: planned, take } = run
      // A reply that ended in the meantime is left out; another one may have its sequence.
      const ids = planned.filter((id) => replying.some((work) => work.id === id && work.pending >= take))
      if (ids.length > 0) return { kind: "replies", ids, take }
    }
    return undefined
  }

  #nextGroup(replying: ReadonlyArray<Work>): Step | undefined {
    for (let group = this.#groups?.shift(); group !== undefined; group = this.#groups?.shift()) {
      const ids = group.filter((id) => replying.some((work) => work.id === id))
      if (ids.length > 0) return { kind: "replies", ids, take: 1 }
    }
    return undefined
  }

  /** Expected milliseconds of the evaluation of so many tokens of a prompt, if nothing runs beside it. */
  promptMs(tokens: number): number {
    const { prompt } = this.#costs
    const whole = Math.floor(tokens / prompt.largest)
    const rest = tokens % prompt.largest
    return whole * prompt.expectedMs(prompt.largest) + (rest === 0 ? 0 : prompt.expectedMs(rest))
  }

  /** Rows of the call: more than its replies where rows of idle sequences make it faster. */
  rowsOf(step: Step): number {
    if (step.kind === "prompt") return 1
    return isCommon(step) ? this.#spareRows.rowsFor(step.ids.length) : step.ids.length
  }

  /**
   * Records a call's duration. For a common call it includes sampling and delivery, otherwise it does not. `rows`: that it had, if there were
   * spare ones.
   */
  observe(step: Step, elapsedMs: number, rows?: number): void {
    const replies = step.kind === "prompt" ? 1 : (rows ?? step.ids.length)
    if (step.kind === "replies") {
      this.#rounds = [...this.#rounds.slice(0, -1), (this.#rounds.at(-1) ?? 0) + elapsedMs]
    } else if (this.#part !== undefined) {
      this.#part.spentMs += elapsedMs - this.#part.expectedMs
      this.#part.expectedMs = 0
    }
    if (isCommon(step)) {
      this.#apartMs += elapsedMs
      this.#costs.replies.observe(replies, elapsedMs)
      this.#spareRows.observe(replies, elapsedMs)
    }
    // A call with the runs of several replies computes more logits than one with a prompt, and teaches nothing.
    else if (replies === 1) this.#costs.prompt.observe(step.take, elapsedMs)
  }

  #promptAlone(prompts: ReadonlyArray<Work>): Step | undefined {
    this.#part = undefined
    this.#rounds = []
    return prompts.length === 0 ? undefined : this.#promptStep(this.#firstOf(prompts), this.#pace.nextAlone())
  }

  /** The first call of a round, and further calls while they fit into the round's time for prompts. */
  #promptBeside(prompts: ReadonlyArray<Work>, replies: ReadonlyArray<Work>): Step | undefined {
    const begun = this.#part
    this.#part = undefined
    if (prompts.length === 0) return undefined
    const part = begun ?? { ...this.#partBeside(prompts, replies), tokens: 0, spentMs: 0 }
    const step = this.#promptStep(this.#firstOf(prompts), part.size)
    if (begun !== undefined && isSpent(begun, step.take)) return undefined
    const expectedMs = this.#costs.prompt.expectedMs(step.take)
    this.#part = { ...part, tokens: part.tokens + step.take, spentMs: part.spentMs + expectedMs, expectedMs }
    return step
  }

  /** The prompt with the fewest tokens left; every few calls the oldest. */
  #firstOf(prompts: ReadonlyArray<Work>): Work {
    const oldestFirst = this.#promptCalls++ % oldestFirstEvery === 0
    return prompts.reduce((first, other) => {
      const earlier = (oldestFirst ? 0 : other.pending - first.pending) || other.order - first.order
      return earlier < 0 ? other : first
    })
  }

  #promptStep({ id, pending, pauseAfter }: Work, size: number): Extract<Step, { kind: "prompt" }> {
    let take = Math.min(evenTake(pending, size), pauseAfter ?? pending, this.#costs.prompt.largest)
    // Avoid a last call of one token: it would be rounded differently (see Slots.alwaysEvaluated).
    if (pending - take === 1 && take > 2) take--
    return { kind: "prompt", id, take }
  }

  #partBeside(prompts: ReadonlyArray<Work>, replies: ReadonlyArray<Work>): RoundPart {
    if (isBurst(prompts, replies)) {
      const all = [...replies, ...prompts]
      const repliesMs = this.#expectedOf(replies)
      // What was never called is expected to take far too long, and these replies would wait as long.
      const allMs = this.#costs.replies.isMeasured(all.length) ? this.#expectedOf(all) : repliesMs
      return this.#pace.inBurst(allMs, repliesMs)
    }
    const pace = prompts.every(({ pictured }) => pictured === true) ? this.#picturePace : this.#pace
    const repliesMs = this.#repliesMs() ?? this.#expectedOf(replies)
    return pace.beside({ prompts: prompts.length, replies: replies.length, repliesMs })
  }

  /** What the replies' calls of the last two rounds took, the lesser of them, because one of them may have been disturbed. */
  #repliesMs(): number | undefined {
    const measured = this.#rounds.filter((ms) => ms > 0)
    return measured.length === 0 ? undefined : Math.min(...measured)
  }

  #expectedOf(works: ReadonlyArray<Work>): number {
    const { replies: costs } = this.#costs
    return groupsMs(replyGroups(idsOf(works), costs), (size) => costs.expectedMs(size))
  }
}

/** True for a call with one token of each of its replies. */
export const isCommon = (step: Step): boolean => step.kind === "replies" && step.take === 1

const isRun = (work: Work): boolean => work.pending >= leastRun

/** Ascending, because only neighbouring sequences share a pass. */
const byId = (a: Work, b: Work): number => a.id - b.id

const idsOf = (works: ReadonlyArray<Work>): ReadonlyArray<number> => [...works].sort(byId).map(({ id }) => id)

/** True if all of these prompts already waited when the first of the replies began. */
const isBurst = (prompts: ReadonlyArray<Work>, replies: ReadonlyArray<Work>): boolean => {
  const began = replies.reduce((first, { beganBefore }) => Math.min(first, beganBefore), Infinity)
  return prompts.every(({ order }) => order < began)
}
