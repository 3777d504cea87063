// The sequences of a context and what their memory holds: which tokens, and, for models whose memory cannot be rolled
// back, the lengths of the checkpoints. Chooses the free sequence for a prompt and how much of it can be reused. Pure;
// SequenceMemory applies the choice.

/** A saved state of one sequence. `Saved` is the native part. */
export interface Checkpoint<Saved> {
  /** Tokens in the sequence when it was taken. */
  readonly length: number
  readonly sizeBytes: number
  readonly saved: Saved
}

/** A picture in a sequence that takes fewer positions than it has rows (M-RoPE). */
export interface Jump {
  /** Index of its first row, and of what follows it. */
  readonly from: number
  readonly to: number
  readonly positions: number
}

/** Whose tokens a sequence holds: only prompts of the same owner continue it. `GenerateRequest.owner`. */
export type Owner = number | undefined

export interface Slot<Saved> {
  readonly id: number
  /** Of `tokens`. */
  owner: Owner
  /** Tokens and rows of pictures whose state is in the sequence, in order. */
  tokens: Array<number>
  /** Ascending. */
  jumps: Array<Jump>
  /** Ascending by length. Empty if the memory can be cut at any token. */
  checkpoints: Array<Checkpoint<Saved>>
  busy: boolean
  /** Larger is more recent; 0 is never. */
  lastUsed: number
}

export const makeSlots = <Saved>(count: number): ReadonlyArray<Slot<Saved>> =>
  Array.from({ length: count }, (_, id) => ({
    id,
    owner: undefined,
    tokens: [],
    jumps: [],
    checkpoints: [],
    busy: false,
    lastUsed: 0,
  }))

/** The position of what has this index. Not inside a jump. */
export const positionAt = ({ jumps }: Pick<Slot<unknown>, "jumps">, index: number): number =>
  jumps.reduce((at, { from, positions, to }) => (to <= index ? at - (to - from) + positions : at), index)

/** All rows of a jump have one time, so the memory can only be cut before and after it. */
const outsideJumps = ({ jumps }: Pick<Slot<unknown>, "jumps">, length: number): number =>
  jumps.find(({ from, to }) => length > from && length < to)?.from ?? length

const commonPrefix = (a: ReadonlyArray<number>, b: ReadonlyArray<number>): number => {
  const end = Math.min(a.length, b.length)
  let length = 0
  while (length < end && a[length] === b[length]) length++
  return length
}

/**
 * Tokens that are always computed for a prompt: one for the logits to start from, and one more so that the last
 * evaluation has two rows, as for a cold prompt. ggml rounds a one-row product of float weights differently,
 * and a reused sequence has to produce the same text as a cold one.
 */
const alwaysEvaluated = 2

/** How many tokens of `prompt` the slot can keep. */
export const reusable = (
  slot: Slot<unknown>,
  prompt: ReadonlyArray<number>,
  needsCheckpoints: boolean,
): number => {
  const shared = Math.min(commonPrefix(slot.tokens, prompt), Math.max(0, prompt.length - alwaysEvaluated))
  const common = outsideJumps(slot, shared)
  if (!needsCheckpoints || common === slot.tokens.length) return common
  return slot.checkpoints.findLast(({ length }) => length <= common)?.length ?? 0
}

/**
 * A token that the owner's most recently used sequence would lose counts half of one that is gained, because most
 * conversations continue. It counts less the longer the sequence was idle, and nothing for the owner's oldest. A guess.
 */
const lossWeight = 0.5

/** What is looked for. */
export interface Wanted {
  readonly prompt: ReadonlyArray<number>
  readonly owner: Owner
  /** Tokens of the prompt's beginning that any sequence can be given (SharedPrompts). */
  readonly ready: number
}

export interface Chosen<Saved> {
  readonly slot: Slot<Saved>
  /** Tokens of the prompt that need not be evaluated: they stay, or are given to the sequence. */
  readonly keep: number
  /** True if the sequence is emptied and given the `ready` tokens. */
  readonly given: boolean
}

/** The slot from which the most slots follow each other without a gap; of several the first. */
const startOfRow = <Saved>(slots: ReadonlyArray<Slot<Saved>>): Slot<Saved> | undefined => {
  const ids = new Set(slots.map(({ id }) => id))
  const length = ({ id }: Slot<Saved>): number => {
    let end = id
    while (ids.has(end)) end++
    return end - id
  }
  const most = Math.max(...slots.map(length))
  return slots.find((slot) => length(slot) === most)
}

/**
 * Beside so many busy slots any free one is taken, also one that its owner may want to continue soon: eight replies side by side take 35 ms a token,
 * five and three of them 65 (0.2 B). Fewer replies gain little. With 4, seven prompts at a time of 16 slots could stay apart for ever.
 */
const manyBusy = 3

/**
 * The empty slot with the lowest id. Without one it is one of the half of the free slots that was used longest ago: one between two busy ones,
 * one beside a busy one, or where a row of such slots begins, so that prompts that come next can be beside it.
 */
const replaceable = <Saved>(slots: ReadonlyArray<Slot<Saved>>): Slot<Saved> | undefined => {
  const free = slots.filter((slot) => !slot.busy)
  const empty = free.find(({ tokens }) => tokens.length === 0)
  if (empty !== undefined) return empty
  const byAge = free.toSorted((a, b) => a.lastUsed - b.lastUsed || a.id - b.id)
  const older = byAge.slice(0, Math.ceil(free.length / 2))
  const busyBeside = ({ id }: Slot<Saved>): number =>
    Number(slots[id - 1]?.busy === true) + Number(slots[id + 1]?.busy === true)
  const beside = (some: ReadonlyArray<Slot<Saved>>): Slot<Saved> | undefined => {
    const most = Math.max(1, ...some.map(busyBeside))
    return some.find((slot) => busyBeside(slot) === most)
  }
  const any = slots.length - free.length >= manyBusy ? byAge : []
  return beside(older) ?? beside(any) ?? startOfRow(older)
}

/**
 * The free slot for a prompt. Undefined if all are busy.
 *
 * Of the slots of other owners only the order of their last use counts, not their tokens and not how many there are: which slot
 * is chosen must tell nothing of another owner's prompts.
 *
 * The lowest empty slot and one beside a busy one are taken because llama.cpp evaluates neighbouring sequences in one pass and splits the
 * batch at gaps (4 sequences side by side decoded 1.3 to 1.8 times as fast as 4 with gaps: tiny models, one thread, 2026-11; 8 of 0.2 B in one
 * row 82 ms, in rows of 2 and 6 130 ms).
 */
export const chooseSlot = <Saved>(
  slots: ReadonlyArray<Slot<Saved>>,
  { owner, prompt, ready }: Wanted,
  needsCheckpoints: boolean,
): Chosen<Saved> | undefined => {
  const free = slots.filter((slot) => !slot.busy)
  const byAge = free
    .filter((slot) => slot.owner === owner)
    .map(({ lastUsed }) => lastUsed)
    .filter((used) => used > 0)
    .sort((a, b) => a - b)
  const keptIn = (slot: Slot<Saved>): number =>
    slot.owner === owner ? reusable(slot, prompt, needsCheckpoints) : 0
  let best: { slot: Slot<Saved>; keep: number } | undefined
  let bestScore = ready
  for (const slot of free) {
    const keep = keptIn(slot)
    if (keep === 0) continue
    const recency = byAge.length < 2 ? 1 : byAge.indexOf(slot.lastUsed) / (byAge.length - 1)
    const score = keep - lossWeight * Math.max(0, recency) * (slot.tokens.length - keep)
    if (score <= bestScore) continue
    best = { slot, keep }
    bestScore = score
  }
  if (best !== undefined) return { ...best, given: false }
  const slot = replaceable(slots)
  if (slot === undefined) return undefined
  const keep = keptIn(slot)
  return keep >= ready ? { slot, keep, given: false } : { slot, keep: ready, given: true }
}
