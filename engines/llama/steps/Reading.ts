// What is read of a prompt, instead of a reply or before one: the logits behind some of its tokens. Which part of a prompt a reading
// may share with a sequence, and when it is not worth its cost. Pure.
import { mostRows } from "../native/Native.ts"
import type { ReplyEnd } from "../replies/Reply.ts"

export interface RowReading {
  /**
   * Indices in the prompt, ascending, or all tokens but the last one. They are all evaluated, also where a sequence has them. A list has
   * at most `mostRows` of them.
   */
  readonly at: ReadonlyArray<number> | "all"
  /** Takes the rows of a call, 0 to `count` - 1, while they are valid. */
  readonly rows: (count: number) => void
  /** Absent: the reading is always worth its cost. */
  readonly unless?: ReadingLimits
  /** How the job ends behind its prompt; undefined: a reply follows. */
  readonly end: ReplyEnd | undefined
}

interface ReadingLimits {
  /** Nothing is evaluated where that is expected to take longer, milliseconds. */
  readonly withinMs: number
  /** Nothing was evaluated, for this reason. */
  readonly refused: (why: ReadingRefusal) => void
}

type ReadingRefusal = "slow" | "occupied"

/** The outcome of a reading, also of one that was refused. */
export const readEnd: ReplyEnd = { finishReason: "stop", completionTokens: 0 }

/** The part of a prompt that a reading may share with a sequence: two tokens are always evaluated (Slots), and all that it reads. */
export const sharedBy = (prompt: ReadonlyArray<number>, { at }: RowReading): ReadonlyArray<number> =>
  at === "all" ? [] : prompt.slice(0, (at[0] ?? prompt.length) + 2)

/** Which of the `take` tokens from index `from` on are read, counted from `from`. */
export const rowsOf = (
  { at }: RowReading,
  promptTokens: number,
  from: number,
  take: number,
): ReadonlyArray<number> =>
  at === "all"
    ? Array.from({ length: Math.min(take, promptTokens - 1 - from) }, (_, index) => index)
    : at.map((index) => index - from).filter((index) => index >= 0 && index < take)

/** Most tokens of a call, so that it has no more rows than fit. */
export const mostTaken = ({ at }: RowReading): number => (at === "all" ? mostRows : Infinity)

/** Tokens that a reading may overwrite in a sequence, if it keeps no more than these. A guess: a user's message and a template's markers. */
const mostLost = 64

/** Why a reading would not be worth its cost in a sequence that keeps some tokens for it and loses others; undefined: it is. */
export const refusalOf = (
  { withinMs }: ReadingLimits,
  { expectedMs, kept, lost }: { readonly expectedMs: number; readonly kept: number; readonly lost: number },
): ReadingRefusal | undefined => {
  if (lost > Math.max(kept, mostLost)) return "occupied"
  return expectedMs > withinMs ? "slow" : undefined
}
