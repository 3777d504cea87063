// Results of earlier measurements, by what they depend on: machine, library and weights. A node stores them in a file
// (src/store/files/ThreadFile), tests and scripts in a map that ends with the process.
import { createHash } from "node:crypto"
import { Context } from "effect"
import type { ThreadChoice } from "#domain/threads/ThreadChoice.ts"

export interface ThreadResults {
  readonly find: (key: string) => ThreadChoice | undefined
  /** Never fails and is not awaited. */
  readonly keep: (key: string, choice: ThreadChoice) => void
}

/** Most results that are kept; the least recently written is dropped first. */
export const mostResults = 64

export const threadResults = (
  first: ReadonlyArray<readonly [string, ThreadChoice]> = [],
  onKept: (all: ReadonlyArray<readonly [string, ThreadChoice]>) => void = () => {},
): ThreadResults => {
  const results = new Map(first.slice(-mostResults))
  return {
    find: (key) => results.get(key),
    keep: (key, choice) => {
      results.delete(key)
      results.set(key, choice)
      for (const oldest of results.keys()) {
        if (results.size <= mostResults) break
        results.delete(oldest)
      }
      onKept([...results])
    },
  }
}

export const KeptThreads = Context.Reference<ThreadResults>("edgewise/actors/KeptThreads", {
  defaultValue: () => threadResults(),
})

/** A short key made of facts, which cannot be read from it. */
export const keyOf = (facts: unknown): string =>
  createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 32)
