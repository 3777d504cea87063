// The most that the requests of one session may be charged together. Counts what was charged and what running requests have used
// so far, and charges nothing beyond the limit.
import { Context, Effect } from "effect"
import type { UsageLedger } from "./UsageLedger.ts"

export class SpendingLimit {
  readonly microDollars: number
  private charged = 0
  /** What each running request costs if it ends now, micro-dollars. */
  private readonly running = new Set<() => number>()

  constructor(microDollars: number) {
    this.microDollars = microDollars
  }

  get isReached(): boolean {
    let sum = this.charged
    for (const cost of this.running) sum += cost()
    return sum >= this.microDollars
  }

  /** Counts a request until the returned function is called, which is before it is charged. */
  watch(cost: () => number): () => void {
    // A function of its own, because two requests may pass the same one.
    const own = () => cost()
    this.running.add(own)
    return () => void this.running.delete(own)
  }

  /** The ledger, which charges only what is left of the limit. */
  ledger(ledger: UsageLedger["Service"]): UsageLedger["Service"] {
    return {
      ...ledger,
      settle: (reservation, settlement) =>
        Effect.suspend(() => {
          const microDollars = Math.min(settlement.microDollars, this.microDollars - this.charged)
          this.charged += microDollars
          return ledger.settle(reservation, { ...settlement, microDollars })
        }),
    }
  }
}

/** The limit of the session that a request belongs to; undefined for most. */
export const CurrentSpendingLimit = Context.Reference<SpendingLimit | undefined>(
  "edgewise/store/CurrentSpendingLimit",
  { defaultValue: () => undefined },
)
