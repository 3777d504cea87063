// Whether a party may take another part of something that all share and that is never taken back, such as the seats of a node's
// conversations. Pure.
//
// A party alone may take `full`. The range between `full` and `fair` is a reserve for parties that have less than an equal part, and
// the one between `fair` and `first` for those that have nothing: so a party that comes later finds a place although others
// have filled the rest, and gets more as theirs end, which they cannot take again before all have equal parts.

interface Limits {
  readonly full: number
  readonly fair: number
  readonly first: number
}

export interface Part {
  readonly party: string
  readonly amount: number
  /**
   * False for what is only expected to be used. To other parties it counts up to an equal part, or one such part where that is
   * more: a party that uses nothing takes nothing away from the others' parts.
   */
  readonly isUsed: boolean
}

interface Sum {
  used: number
  expected: number
  /** The largest single part that is only expected. */
  largest: number
}

/** Whether `party` may take `amount` beside all these parts. */
export const mayTake = (
  parts: Iterable<Part>,
  { amount, party }: Pick<Part, "party" | "amount">,
  { fair, first, full }: Limits,
): boolean => {
  const sums = new Map<string, Sum>()
  for (const part of parts) {
    const sum = sums.get(part.party) ?? { used: 0, expected: 0, largest: 0 }
    sums.set(part.party, sum)
    if (part.isUsed) sum.used += part.amount
    else {
      sum.expected += part.amount
      sum.largest = Math.max(sum.largest, part.amount)
    }
  }
  const own = sums.get(party)
  const equal = full / (sums.size + (own === undefined ? 1 : 0))
  let others = 0
  for (const [other, { expected, largest, used }] of sums) {
    if (other !== party) others += used + Math.min(expected, Math.max(0, Math.max(equal, largest) - used))
  }
  const mine = own === undefined ? 0 : own.used + own.expected
  if (own === undefined) return others + amount <= first
  return others + mine + amount <= (mine + amount <= equal ? fair : full)
}
