// Results of earlier measurements, by what they depend on: machine, library and weights. A node stores them in files
// (src/store/files/ResultFiles), tests and scripts in maps that end with the process.
import { createHash } from "node:crypto"
import { Context } from "effect"
import type { CallCosts } from "#domain/threads/CallCosts.ts"
import type { ThreadChoice } from "#domain/threads/ThreadChoice.ts"

export interface KeptResults<A> {
  readonly find: (key: string) => A | undefined
  /** Never fails and is not awaited. */
  readonly keep: (key: string, result: A) => void
}

/** Most results that are kept; the least recently written is dropped first. */
export const mostResults = 64

export const keptResults = <A>(
  first: ReadonlyArray<readonly [string, A]> = [],
  onKept: (all: ReadonlyArray<readonly [string, A]>) => void = () => {},
): KeptResults<A> => {
  const results = new Map(first.slice(-mostResults))
  return {
    find: (key) => results.get(key),
    keep: (key, result) => {
      results.delete(key)
      results.set(key, result)
      for (const oldest of results.keys()) {
        if (results.size <= mostResults) break
        results.delete(oldest)
      }
      onKept([...results])
    },
  }
}

/** CPU threads of models. */
export const KeptThreads = Context.Reference<KeptResults<ThreadChoice>>("edgewise/actors/KeptThreads", {
  defaultValue: () => keptResults(),
})

/** Durations of the native calls of text models. */
export const KeptCosts = Context.Reference<KeptResults<CallCosts>>("edgewise/actors/KeptCosts", {
  defaultValue: () => keptResults(),
})

/** A short key made of facts, which cannot be read from it. */
export const keyOf = (facts: unknown): string =>
  createHash("sha256").update(JSON.stringify(facts)).digest("hex").slice(0, 32)
