// How many tokens the language model reads for a user before a conversation asks for an answer. That is not charged, so it is bounded:
// by an allowance at once, and beyond it by the prompts of answers that were charged. Pure but for the clock that it is given.
import { LRUCache } from "lru-cache"
import { TokenBucket } from "./TokenBucket.ts"

/**
 * Prompt tokens of a user over all of its conversations: 20 that begin with instructions of 1,600 tokens. They come back within an hour,
 * and at once with each answer: as many as its prompt has. So what is read ahead and not charged is at most what is charged, and
 * 32,768 tokens an hour. A guess.
 */
export const readAhead = { burst: 32_768, perSecond: 32_768 / 3_600 }

/** Users in the table; one more replaces the one that was last seen longest ago, which begins anew. A guess: 2 MB. */
const maxUsers = 10_000

/** A token that is found in a sequence is not computed, but its text was tokenized and compared. A guess. */
const partOfCached = 1 / 16

/** Characters of a token before it is counted. Of English; what it really took is settled afterwards. */
const charactersPerToken = 4

/** One prompt that is read ahead. Its tokens are estimated when it begins, and settled when the engine has counted them. */
export interface Reading {
  readonly started: (promptTokens: number, cachedTokens: number) => void
  /** Call it in any case. One that never started costs what a prompt costs that is wholly found. */
  readonly ended: () => void
}

export class ReadAhead {
  readonly #users = new LRUCache<string, TokenBucket>({ max: maxUsers })
  /** Milliseconds of a monotonic clock. */
  readonly #now: () => number

  constructor(now: () => number) {
    this.#now = now
  }

  #bucketOf(user: string, nowMs: number): TokenBucket {
    const known = this.#users.get(user)
    if (known !== undefined) return known
    const bucket = new TokenBucket(readAhead, nowMs)
    this.#users.set(user, bucket)
    return bucket
  }

  /** Begins to read a prompt of about so many characters; undefined if the user has too little left. */
  begin(user: string, characters: number): Reading | undefined {
    const nowMs = this.#now()
    const bucket = this.#bucketOf(user, nowMs)
    const estimate = characters / charactersPerToken + 1
    if (bucket.available(nowMs) < Math.min(estimate, readAhead.burst)) return undefined
    bucket.add(-estimate, nowMs)
    let isOpen = true
    const settle = (tokens: number): void => {
      if (isOpen) bucket.add(estimate - tokens, this.#now())
      isOpen = false
    }
    return {
      // Also a text of few tokens was sent to the engine, tokenized and compared.
      started: (promptTokens, cachedTokens) =>
        settle(Math.max(promptTokens - cachedTokens * (1 - partOfCached), estimate * partOfCached) + 1),
      ended: () => settle(estimate * partOfCached + 1),
    }
  }

  /** An answer to a prompt of so many tokens was charged. */
  answered(user: string, promptTokens: number): void {
    const nowMs = this.#now()
    this.#bucketOf(user, nowMs).add(promptTokens, nowMs)
  }

  /** Tokens that a user has left; below 0 where prompts were longer than estimated. */
  left(user: string): number {
    const nowMs = this.#now()
    return this.#bucketOf(user, nowMs).available(nowMs)
  }
}
