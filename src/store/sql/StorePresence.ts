// Whether a shared database answers, and how long a node goes on without it. What may go on in that time is decided by who asks:
// requests with a credential that was read before, paid from money that is leased (docs/regions-of-nodes.md).
import { Context, Effect, Layer } from "effect"

export interface StorePresence {
  /** True from when the database was found not to answer until it has answered. */
  readonly isAway: () => boolean
  /** True while it is away, for as long as requests may go on without it. */
  readonly isInGrace: () => boolean
}

/** A store that is never away, as SQLite is. */
export const StorePresence = Context.Reference<StorePresence>("edgewise/store/StorePresence", {
  defaultValue: () => ({ isAway: () => false, isInGrace: () => false }),
})

/** The presence of one database, as its pool of connections reports it. */
export class DatabasePresence implements StorePresence {
  readonly #graceMs: number
  /** `performance.now()`; undefined: it answers. */
  #awaySinceMs: number | undefined

  constructor(graceMs: number) {
    this.#graceMs = graceMs
  }

  readonly isAway = (): boolean => this.#awaySinceMs !== undefined
  readonly isInGrace = (): boolean =>
    this.#awaySinceMs !== undefined && performance.now() - this.#awaySinceMs < this.#graceMs

  failed(): void {
    this.#awaySinceMs ??= performance.now()
  }
  answered(): void {
    this.#awaySinceMs = undefined
  }
}

/**
 * How long a statement may take, until its connection is given up, milliseconds. Undefined: what the server allows, and some time for
 * its answer.
 */
export const StatementDeadline = Context.Reference<number | undefined>("edgewise/store/StatementDeadline", {
  defaultValue: () => undefined,
})

/** Longest wait of a request for the database, milliseconds. */
const liveMs = 2_000

/** For statements that a request waits for. */
export const whileRequestWaits = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, StatementDeadline, liveMs)

/** The same for all that a listener's requests do. */
export const requestsWaitBriefly: Layer.Layer<never> = Layer.succeed(StatementDeadline, liveMs)

/** For a request whose statements change many rows. */
export const asLongAsItTakes = <A, E, R>(effect: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> =>
  Effect.provideService(effect, StatementDeadline, undefined)
