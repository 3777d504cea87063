// Which inputs of which requests the next evaluation takes. Requests take part one input at a time, so that one with
// thousands of inputs does not delay the others. Pure.

/** The inputs of a request, which are evaluated in their order. */
export interface Waiting {
  readonly inputs: ReadonlyArray<ReadonlyArray<number>>
  /** Index of the first input that was not evaluated. */
  next: number
}

export interface Bounds {
  /** Tokens of an evaluation. A longer input is evaluated alone. */
  readonly tokens: number
  /** Inputs of an evaluation. */
  readonly sequences: number
}

/** Something that belongs to a request. */
interface Owner {
  readonly progress: Waiting
}

export interface Share<W extends Owner> {
  readonly of: W
  /** The next so many of its inputs. */
  readonly count: number
}

/** `waiting` in the order in which they are served; the first gets at least one input. */
export const planEvaluation = <W extends Owner>(
  waiting: ReadonlyArray<W>,
  { sequences, tokens }: Bounds,
): ReadonlyArray<Share<W>> => {
  const counts = new Map<W, number>()
  let usedTokens = 0
  let used = 0
  let open = waiting
  while (open.length > 0 && used < sequences) {
    const still: Array<W> = []
    for (const one of open) {
      const count = counts.get(one) ?? 0
      const size = one.progress.inputs[one.progress.next + count]?.length
      if (size === undefined || used === sequences || (used > 0 && usedTokens + size > tokens)) continue
      counts.set(one, count + 1)
      used++
      usedTokens += size
      still.push(one)
    }
    open = still
  }
  return [...counts].map(([of, count]) => ({ of, count }))
}
