// The most that the requests of all sessions of a client secret may be charged together. Counts what was charged and what running
// requests have used so far, and charges nothing beyond the limit.
import { Context, Effect } from "effect"
import type { UsageLedger } from "./UsageLedger.ts"

export class SpendingLimit {
  readonly microDollars: number
  /** Called with each charge; reports its end with `recorded`. */
  readonly #record: (microDollars: number) => Effect.Effect<void>
  /** What was charged by all nodes, as the store said last. */
  #stored = 0
  /** What was charged here and is not in the store yet. */
  #unstored = 0
  /** What each running request costs if it ends now, micro-dollars. */
  readonly #running = new Set<() => number>()

  constructor(microDollars: number, record: (microDollars: number) => Effect.Effect<void>) {
    this.microDollars = microDollars
    this.#record = record
  }

  get isReached(): boolean {
    let sum = this.#stored + this.#unstored
    for (const cost of this.#running) sum += cost()
    return sum >= this.microDollars
  }

  /** The store's sum. A sum that was read while charges were on their way may hold them or not, and is ignored. */
  known(sum: number): void {
    if (this.#unstored === 0) this.#stored = Math.max(this.#stored, sum)
  }

  /** A charge is in the store, whose sum is this now. */
  recorded(microDollars: number, sum: number): void {
    this.#unstored -= microDollars
    this.#stored = Math.max(this.#stored + microDollars, sum)
  }

  /** Counts a request until the returned function is called, which is before it is charged. */
  watch(cost: () => number): () => void {
    // A function of its own, because two requests may pass the same one.
    const own = () => cost()
    this.#running.add(own)
    return () => void this.#running.delete(own)
  }

  /** The ledger, which charges only what is left of the limit. */
  ledger(ledger: UsageLedger["Service"]): UsageLedger["Service"] {
    return {
      ...ledger,
      settle: (reservation, settlement) =>
        Effect.suspend(() => {
          const left = Math.max(0, this.microDollars - this.#stored - this.#unstored)
          const microDollars = Math.min(settlement.microDollars, left)
          this.#unstored += microDollars
          const settled = ledger.settle(reservation, { ...settlement, microDollars })
          return microDollars === 0 ? settled : Effect.andThen(this.#record(microDollars), settled)
        }),
    }
  }
}

/** The limit of the session that a request belongs to; undefined for most. */
export const CurrentSpendingLimit = Context.Reference<SpendingLimit | undefined>(
  "edgewise/store/CurrentSpendingLimit",
  { defaultValue: () => undefined },
)
