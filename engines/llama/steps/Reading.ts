// What is read of a prompt instead of a reply: the logits behind some of its tokens. Which part of a prompt a reading may share with a
// sequence, and when it is not worth its cost. Pure.
import type { ReplyEnd } from "../replies/Reply.ts"

export interface RowReading {
  /** Indices in the prompt, ascending; the last one is its last token. They are all evaluated, also where a sequence has them. */
  readonly at: ReadonlyArray<number>
  /** Nothing is evaluated where that is expected to take longer, milliseconds. */
  readonly withinMs: number
  /** Takes the rows in their order, while they are valid. */
  readonly row: (row: number) => void
  /** Nothing was evaluated, for this reason. */
  readonly refused: (why: ReadingRefusal) => void
}

export type ReadingRefusal = "slow" | "occupied"

/** The outcome of a reading, also of one that was refused. */
export const readEnd: ReplyEnd = { finishReason: "stop", completionTokens: 0 }

/** The part of a prompt that a reading may share with a sequence: two tokens are always evaluated (Slots), and all that it reads. */
export const sharedBy = (prompt: ReadonlyArray<number>, { at }: RowReading): ReadonlyArray<number> =>
  prompt.slice(0, at[0]! + 2)

/** Tokens that a reading may overwrite in a sequence, if it keeps no more than these. A guess: a user's message and a template's markers. */
const mostLost = 64

/** Why a reading would not be worth its cost in a sequence of `held` tokens, of which it keeps some; undefined: it is. */
export const refusalOf = (
  { withinMs }: RowReading,
  { expectedMs, held, kept }: { readonly expectedMs: number; readonly held: number; readonly kept: number },
): ReadingRefusal | undefined => {
  if (held - kept > Math.max(kept, mostLost)) return "occupied"
  return expectedMs > withinMs ? "slow" : undefined
}
