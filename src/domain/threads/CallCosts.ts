// Measured durations of a text model's native calls, as a node keeps them between two loads. Plain data: an engine sends them once it has
// measured, the node stores them in a file and gives them to the next engine with the same weights on the same machine.
import * as Schema from "effect/Schema"

/** Most sizes of one kind of call: the powers of two of an Int32. */
const mostSizes = 32

const Size = Schema.Int.check(Schema.isBetween({ minimum: 1, maximum: 2 ** 31 - 1 }))
const Milliseconds = Schema.Finite.check(Schema.isGreaterThan(0))

/** Milliseconds of a call by its size, ascending. */
const CallDurations = Schema.Array(Schema.Tuple([Size, Milliseconds])).check(Schema.isMaxLength(mostSizes))
export type CallDurations = typeof CallDurations.Type

export const CallCosts = Schema.Struct({
  /** By tokens of a prompt. */
  prompt: CallDurations,
  /** By replies that get a token each. */
  replies: CallDurations,
})
export type CallCosts = typeof CallCosts.Type
