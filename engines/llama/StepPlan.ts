// Which sequences take how many tokens in the next evaluation, so that long prompts and running replies share the
// model. Called by StepLoop before each step. Pure; knows numbers only.

export interface Work {
  /** Sequence id. */
  readonly id: number
  /** Admission order; lower is older. */
  readonly order: number
  /** Tokens waiting to be evaluated; 1 for a running reply. */
  readonly pending: number
  /** A reply under way, as opposed to a prompt. */
  readonly replying: boolean
  /** A prompt stops after this many tokens at the latest, so that a checkpoint can be taken there. */
  readonly pauseAfter: number | undefined
}

export interface Share {
  readonly id: number
  readonly take: number
}

export interface Limits {
  /** Prompt tokens of one step: what fits into the time of one slice. */
  readonly promptTokens: number
  /** Tokens of one native batch. */
  readonly batchTokens: number
  /** This step serves the oldest prompt first, whatever its length. */
  readonly oldestFirst: boolean
}

/** Ascending by id, because llama.cpp evaluates a run of neighbouring sequences in one pass. */
export const planStep = (works: ReadonlyArray<Work>, limits: Limits): ReadonlyArray<Share> => {
  const shares: Array<Share> = []
  let room = limits.batchTokens
  for (const { id, replying } of works) {
    if (!replying || room === 0) continue
    shares.push({ id, take: 1 })
    room--
  }
  room = Math.min(room, limits.promptTokens)
  const prompts = works.filter(({ replying }) => !replying)
  prompts.sort((a, b) => (limits.oldestFirst ? 0 : a.pending - b.pending) || a.order - b.order)
  for (const { id, pending, pauseAfter } of prompts) {
    if (room === 0) break
    let take = Math.min(pending, room, pauseAfter ?? pending)
    // A last slice of one token would be rounded differently (see Slots.alwaysEvaluated).
    if (pending - take === 1 && take > 2) take--
    shares.push({ id, take })
    room -= take
  }
  return shares.sort((a, b) => a.id - b.id)
}
