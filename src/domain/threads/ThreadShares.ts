// Divides the CPU threads of a machine among the models that work at the same time. Pure.
import type { Urgency } from "../queues/FairQueue.ts"

/** One model that has requests. */
export interface Worker {
  readonly id: string
  /** The most urgent of its requests. */
  readonly urgency: Urgency
  /** Threads that it would use alone, at least 1. */
  readonly wants: number
}

/**
 * Shares by urgency. Shares instead of strict priority, so that no model keeps only one of many threads while others
 * work. A guess.
 */
const weights: Readonly<Record<Urgency, number>> = { live: 4, interactive: 2, background: 1 }

/**
 * Threads by worker id: never 0, never more than a worker wants, and together no more than `threads` unless there are
 * more workers than threads. Threads that one worker does not want go to the others.
 */
export const shareThreads = (
  workers: ReadonlyArray<Worker>,
  threads: number,
): ReadonlyMap<string, number> => {
  const shares = new Map(workers.map(({ id }) => [id, 1]))
  // Each thread goes to the worker furthest below its share; among equals to the more urgent, then the first.
  for (let left = threads - workers.length; left > 0; left--) {
    let next: Worker | undefined
    let lowest = Number.POSITIVE_INFINITY
    for (const worker of workers) {
      const share = shares.get(worker.id) ?? 1
      const filled = (share + 1) / weights[worker.urgency]
      const ahead = filled < lowest || (filled === lowest && next !== undefined && isBefore(worker, next))
      if (share < worker.wants && ahead) {
        next = worker
        lowest = filled
      }
    }
    if (next === undefined) break
    shares.set(next.id, (shares.get(next.id) ?? 1) + 1)
  }
  return shares
}

const isBefore = (a: Worker, b: Worker): boolean => weights[a.urgency] > weights[b.urgency]
