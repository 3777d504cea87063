// What the realtime sockets of a node share: memory for what they hold, and how many bytes of large events a user sends and gets. A
// socket's share of it ends with its scope.
import { getHeapStatistics } from "node:v8"
import { Context, Effect, type Scope } from "effect"
import { GcraLimiter } from "#domain/access/GcraLimiter.ts"
import { type Holding, MemoryBudget } from "#domain/queues/MemoryBudget.ts"
import { monotonicMs } from "#domain/queues/Monotonic.ts"
import { type InvalidRequest, MemoryPressure } from "#domain/wire/Errors.ts"
import { noMemory } from "#domain/wire/RealtimeProtocol.ts"

const mib = 1024 * 1024

/**
 * Share of the heap that may be held. What is counted is held as texts of V8's heap, mostly; the rest of the heap is for the node's
 * other work, and for what is garbage and not collected yet. A guess.
 */
const heapShare = 1 / 4

/** Twenty conversations that are full, each with two minutes of audio. */
const mostUserBytes = 256 * mib

/** What a socket holds that has done nothing yet: its fibers, its detector and its audio filters, bytes. */
const socketBytes = 128 * 1024

/** Larger events, and larger answers to events, are counted in bytes. Smaller ones are bounded by their number. */
export const largeBytes = 16 * 1024

/** Bytes of large events of a user over all sockets, with those of the answers: at once, and a second. Guesses. */
export const largeTraffic = { burstBytes: 32 * mib, bytesPerSecond: 4 * mib }

/**
 * The same of all users: one event after the other, so that a gateway works at large events for about a quarter of its time. Measured:
 * 4 to 8 ms for each megabyte that is read, made to JSON or written.
 */
const nodeTraffic = { burstBytes: 1, bytesPerSecond: 32 * mib }

/** Users of which the newest bytes are remembered. */
const maxUsers = 10_000

/** Retry-After where no socket has memory. A guess: conversations end, and items are deleted. */
const retryAfterMs = 5_000

export interface RealtimeBudget {
  readonly memory: MemoryBudget
  /** Bytes of each user. */
  readonly traffic: GcraLimiter
  /** Bytes of all. */
  readonly all: GcraLimiter
}

const limiterOf = ({ burstBytes, bytesPerSecond }: typeof largeTraffic, maxAddresses: number): GcraLimiter =>
  new GcraLimiter({ burst: burstBytes, forgiveMs: 1000 / bytesPerSecond, maxAddresses })

/** `heapBytes`: the most that V8's heap may have. */
export const realtimeBudget = (heapBytes = getHeapStatistics().heap_size_limit): RealtimeBudget => ({
  memory: new MemoryBudget({ node: Math.floor(heapBytes * heapShare), user: mostUserBytes }),
  traffic: limiterOf(largeTraffic, maxUsers),
  all: limiterOf(nodeTraffic, 1),
})

/** One for the process, whose memory it is. */
export const CurrentRealtimeBudget = Context.Reference<RealtimeBudget>("edgewise/api/RealtimeBudget", {
  defaultValue: () => realtimeBudget(),
})

export class SocketShare {
  /** The memory that this socket holds. */
  readonly held: Holding
  readonly #budget: RealtimeBudget
  readonly #user: string

  constructor(budget: RealtimeBudget, user: string) {
    this.#budget = budget
    this.#user = user
    this.held = budget.memory.open(user)
  }

  /** Waits until so many bytes of a large event may be handled. Each waits for those that asked before. */
  pay(bytes: number): Effect.Effect<void> {
    return bytes <= largeBytes ? Effect.void : this.#payLarge(bytes)
  }

  #payLarge(bytes: number): Effect.Effect<void> {
    const { all, traffic } = this.#budget
    const turn = (limiter: GcraLimiter, whose: string) =>
      Effect.flatMap(monotonicMs, (nowMs) => {
        const waitMs = limiter.waitMs(whose, nowMs)
        limiter.failed(whose, nowMs, bytes)
        return Effect.sleep(waitMs)
      })
    // A user's own turn comes first: those that wait for it keep no other user waiting.
    return Effect.andThen(turn(traffic, this.#user), turn(all, "all"))
  }

  /**
   * Works on an event of so many bytes, which are held twice meanwhile: as they are read and as they are written. `field`: of the
   * refusal where there is no memory for that.
   */
  hold<A, E, R>(
    field: string,
    bytes: number,
    work: Effect.Effect<A, E, R>,
  ): Effect.Effect<A, E | InvalidRequest, R> {
    if (bytes <= largeBytes) return work
    return Effect.suspend((): Effect.Effect<A, E | InvalidRequest, R> => {
      if (!this.held.take(2 * bytes)) return Effect.fail(noMemory(field, this.held))
      return Effect.ensuring(
        work,
        Effect.sync(() => this.held.giveBack(2 * bytes)),
      )
    })
  }

  /** Writes an event of so many bytes, or does nothing where there is no memory for it. */
  write<A, E, R>(
    field: string,
    bytes: number,
    work: Effect.Effect<A, E, R>,
  ): Effect.Effect<A, E | InvalidRequest, R> {
    return this.hold(field, bytes, Effect.andThen(this.pay(bytes), work))
  }
}

/** The share of a new socket, until the scope closes. */
export const socketShare = (user: string): Effect.Effect<SocketShare, MemoryPressure, Scope.Scope> =>
  Effect.flatMap(CurrentRealtimeBudget, (budget) =>
    Effect.acquireRelease(
      Effect.suspend(() => {
        const share = new SocketShare(budget, user)
        return share.held.take(socketBytes)
          ? Effect.succeed(share)
          : Effect.fail(new MemoryPressure({ retryAfterMs }))
      }),
      ({ held }) => Effect.sync(() => held.end()),
    ),
  )
