// What the step loop asks of a reply that has to follow a grammar. One instance for each reply.

export interface Constraint {
  /** True if this token may be the next one, with `left` tokens of the reply's bound left, this one included. End tokens: only where the reply may end. */
  readonly allows: (token: number, left: number) => boolean
  /**
   * Finds what `mask` needs, one slice of the work a call; true once it has it. `left` is the same until then. Called only after
   * `allows` refused the sampled token.
   */
  readonly find: (left: number) => boolean
  /** Sets the logits of all tokens that may not be next to -Infinity. Without `find` it does all of the work at once. */
  readonly mask: (logits: Float32Array, left: number) => void
  /** The token was appended to the reply. */
  readonly accept: (token: number) => void
  /**
   * Tokens that must come next, in order, because nothing else is possible (keys, punctuation). Empty if there is a
   * choice. At most 64. The last token of a run whose text could be the beginning of a longer allowed token is left out.
   * With `left`, the tokens are also left out if the shortest end of the reply would then not fit.
   */
  readonly forced: (left?: number) => ReadonlyArray<number>
  /** True if nothing but the end may follow. */
  readonly finished: () => boolean
  /** True if the reply may end here. */
  readonly complete: () => boolean
}
