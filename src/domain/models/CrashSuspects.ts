// Whose requests an engine crashed over. An engine serves many users at once, so a crash only says that one of them may have
// caused it. Three rules find out which, and keep the others served:
//
// 1. Every user with a request in the engine at a crash is on probation for a while: suspects are not served side by side,
//    so the next crash within that time has one of them in it at most. Each further crash doubles the time.
// 2. If exactly one user of a crash was there at an earlier one, that user is refused for a while, longer each time.
// 3. A crash counts against the engine (see actors/Supervisor) only if none of its users was there at an earlier one. So one
//    user spends one of the restarts an engine has, however often it crashes.
//
// Plain data with the caller's times; one table for each model. Users without a name are not looked at.
import { LRUCache } from "lru-cache"

/** After the last crash that a user was there at, all of it is forgotten. */
const rememberedMs = 1_800_000
/** A guess: an attack that is slower than this costs others one restart a time, which they wait out. */
const probationMs = 15_000
const longestProbationMs = 600_000
/** A guess: short, because a bug of the engine's may have hit the same user twice. */
const refusalMs = 60_000
const longestRefusalMs = 600_000
/** Users remembered; one more displaces the one whose last crash is the longest ago. */
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

export interface CrashVerdict {
  /** Refused from now on. */
  readonly guilty: string | undefined
  /** Whether it is a crash of the engine's own, as far as is known. */
  readonly counts: boolean
}

export class CrashSuspects {
  /** By user, in the order of last crashes: read with `peek`, which leaves the order alone. */
  private readonly suspects = new LRUCache<string, Suspect>({ max: mostUsers })

  /** @param present users with a request in the engine, each once or more */
  crashed(present: Iterable<string>, nowMs: number): CrashVerdict {
    this.forget(nowMs)
    const users = [...new Set(present)].filter((user) => user !== "")
    const repeated = users.filter((user) => this.suspects.peek(user) !== undefined)
    const guilty = repeated.length === 1 ? repeated[0] : undefined
    for (const user of users) this.note(user, user === guilty, nowMs)
    return { guilty, counts: repeated.length === 0 }
  }

  /** Time until the user is served again; 0 where it is now. */
  refusedForMs(user: string, nowMs: number): number {
    return Math.max(0, (this.suspects.peek(user)?.refusedUntilMs ?? nowMs) - nowMs)
  }

  isOnProbation(user: string, nowMs: number): boolean {
    return (this.suspects.peek(user)?.probationUntilMs ?? nowMs) > nowMs
  }

  /** Whether there are any suspects, to spare the others the question. */
  get isEmpty(): boolean {
    return this.suspects.size === 0
  }

  private note(user: string, guilty: boolean, nowMs: number): void {
    const before = this.suspects.peek(user) ?? unknown
    this.suspects.set(user, {
      lastMs: nowMs,
      crashes: before.crashes + 1,
      refusals: before.refusals + (guilty ? 1 : 0),
      probationUntilMs: nowMs + doubled(probationMs, before.crashes, longestProbationMs),
      refusedUntilMs: guilty
        ? nowMs + doubled(refusalMs, before.refusals, longestRefusalMs)
        : before.refusedUntilMs,
    })
  }

  private forget(nowMs: number): void {
    for (const user of this.suspects.rkeys()) {
      if (nowMs - (this.suspects.peek(user) ?? unknown).lastMs < rememberedMs) return
      this.suspects.delete(user)
    }
  }
}
