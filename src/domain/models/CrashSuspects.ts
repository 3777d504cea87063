// Finds the user whose requests crash an engine. An engine serves many users at once, so a crash only shows that one of
// them may have caused it. Three rules identify this user and keep the others served:
//
// 1. Every user with a request in the engine at a crash is a suspect for a while. Suspects are not served side by side,
//    so the next crash in that time involves at most one of them. Each further crash doubles the time.
// 2. If exactly one user of a crash was also present at an earlier one, that user is refused for a while, longer each time.
// 3. A crash counts against the engine's restarts only if none of its users was present at an earlier one. So one user
//    uses up one restart of the engine, however often it crashes.
//
// Plain data with the caller's times; one table for each model. Users without a name are ignored.
import { LRUCache } from "lru-cache"

/** Time after the last crash of a user until all is forgotten. */
const rememberedMs = 1_800_000
/** A guess: a slower attack costs the other users one restart each time. */
const probationMs = 15_000
const longestProbationMs = 600_000
/** A guess: short, because a bug of the engine may have hit the same user twice by chance. */
const refusalMs = 60_000
const longestRefusalMs = 600_000
/** Users in the table. A further one replaces the one with the oldest last crash. */
const mostUsers = 4_096

interface Suspect {
  readonly lastMs: number
  readonly crashes: number
  readonly refusals: number
  readonly probationUntilMs: number
  readonly refusedUntilMs: number
}

const unknown: Suspect = {
  lastMs: 0,
  crashes: 0,
  refusals: 0,
  probationUntilMs: Number.NEGATIVE_INFINITY,
  refusedUntilMs: Number.NEGATIVE_INFINITY,
}

const doubled = (first: number, times: number, most: number): number => Math.min(most, first * 2 ** times)

interface CrashVerdict {
  /** The user who is refused from now on. */
  readonly guilty: string | undefined
  /** True if the crash counts against the engine. */
  readonly counts: boolean
}

export class CrashSuspects {
  /** By user, in the order of last crashes: read with `peek`, which leaves the order alone. */
  readonly #suspects = new LRUCache<string, Suspect>({ max: mostUsers })

  /** @param present users with a request in the engine, each once or more */
  crashed(present: Iterable<string>, nowMs: number): CrashVerdict {
    this.#forget(nowMs)
    const users = [...new Set(present)].filter((user) => user !== "")
    const repeated = users.filter((user) => this.#suspects.peek(user) !== undefined)
    const guilty = repeated.length === 1 ? repeated[0] : undefined
    for (const user of users) this.#note(user, user === guilty, nowMs)
    return { guilty, counts: repeated.length === 0 }
  }

  /** Time until the user is served again. 0 if it is served now. */
  refusedForMs(user: string, nowMs: number): number {
    return Math.max(0, (this.#suspects.peek(user)?.refusedUntilMs ?? nowMs) - nowMs)
  }

  isOnProbation(user: string, nowMs: number): boolean {
    return (this.#suspects.peek(user)?.probationUntilMs ?? nowMs) > nowMs
  }

  /** Two users on probation are not served at the same time: true if another one of `served` is on probation too. */
  isHeld(user: string, served: ReadonlyArray<string>, nowMs: number): boolean {
    return (
      this.isOnProbation(user, nowMs) &&
      served.some((other) => other !== user && this.isOnProbation(other, nowMs))
    )
  }

  /** True if there are no suspects; saves the other checks. */
  get isEmpty(): boolean {
    return this.#suspects.size === 0
  }

  #note(user: string, guilty: boolean, nowMs: number): void {
    const before = this.#suspects.peek(user) ?? unknown
    this.#suspects.set(user, {
      lastMs: nowMs,
      crashes: before.crashes + 1,
      refusals: before.refusals + (guilty ? 1 : 0),
      probationUntilMs: nowMs + doubled(probationMs, before.crashes, longestProbationMs),
      refusedUntilMs: guilty
        ? nowMs + doubled(refusalMs, before.refusals, longestRefusalMs)
        : before.refusedUntilMs,
    })
  }

  #forget(nowMs: number): void {
    for (const user of this.#suspects.rkeys()) {
      if (nowMs - (this.#suspects.peek(user) ?? unknown).lastMs < rememberedMs) return
      this.#suspects.delete(user)
    }
  }
}
