// Chooses a number of threads from measured times of the same work with several numbers of threads. The passed function
// does the work once and measures it.
import { fixedThreads, type ThreadChoice, type ThreadTrial, type ThreadWork } from "./ThreadChoice.ts"

/** One run of the work. */
export interface Sample {
  readonly ms: number
  /** Processor time of all threads of the process during the run. */
  readonly cpuMs: number
}

/**
 * A larger number of threads is chosen only if it needs at most this part of the time of a smaller one. A measurement
 * has the machine alone, and requests do not: replies of a 0.2 B model took 0.90 of the time with two threads during
 * its load, but came at 43 tokens a second instead of 58 through HTTP, beside the gateway and the client on the same
 * two cores. On a machine with AVX-512 a part of 0.93 gave one reply 85 tokens a second instead of 82, for twice the
 * processor time (2026-11-28).
 */
const clearlyFaster = 0.85

/**
 * Work that takes one thread less than this stays on one thread. Threads that share a step wait for each other, and a
 * thread that the system suspends for another process resumes after 3 to 10 ms: on a busy machine with two cores, steps
 * of 0.2 ms fell from 4,600 a second to 100 (measured). The possible gain is a fraction of a millisecond.
 */
const shortestMs = 5

/** Runs of each count at most. */
const mostRounds = 5

/** One kind of work may take the total time divided by this. */
const budgetParts = 3

/**
 * Expected ratio of the times of one step size and the next smaller one: 1 to 8, depending on memory bandwidth. A
 * guess.
 */
const growth = 4

/**
 * A run of n threads on free cores uses nearly n times its duration of processor time. With less than this share of it,
 * other processes disturbed the run.
 */
const undisturbed = 0.8

const median = (values: ReadonlyArray<number>): number =>
  values.toSorted((a, b) => a - b)[Math.floor((values.length - 1) / 2)] ?? 0

interface TrialOptions {
  readonly trial: ThreadTrial
  /** Kinds of work, ascending by size; undefined for an engine with one kind. */
  readonly sizes: ReadonlyArray<number | undefined>
  readonly run: (tokens: number | undefined, threads: number) => Promise<Sample>
  /** Approximate time for all measurements. */
  readonly budgetMs: number
}

const worked = (tokens: number | undefined, threads: number, ms: ThreadWork["ms"]): ThreadWork => ({
  ...(tokens === undefined ? {} : { tokens }),
  threads,
  ms,
})

/** Milliseconds as stored and shown. */
const rounded = (ms: number): number => Math.round(ms * 1000) / 1000

/** Measures one kind of work. Undefined if other processes disturbed it. `spentMs` counts the time used. */
const measure = async (
  { budgetMs, run, trial: { counts } }: TrialOptions,
  tokens: number | undefined,
): Promise<{ readonly work: ThreadWork | undefined; readonly spentMs: number }> => {
  const first = await run(tokens, 1)
  if (first.ms < shortestMs) return { work: worked(tokens, 1, { 1: rounded(first.ms) }), spentMs: first.ms }
  const samples = new Map(counts.map((count) => [count, [] as Array<Sample>]))
  samples.get(1)?.push(first)
  let spentMs = first.ms
  // The counts alternate, so that changes of the machine's speed affect all of them.
  for (let round = 0; round < mostRounds && (round === 0 || spentMs < budgetMs / budgetParts); round++)
    for (const count of counts) {
      if (round === 0 && count === 1) continue
      const sample = await run(tokens, count)
      samples.get(count)?.push(sample)
      spentMs += sample.ms
    }
  const busy = (count: number) =>
    median(samples.get(count)?.map(({ cpuMs, ms }) => cpuMs / ms) ?? []) < undisturbed * count
  if (counts.some(busy)) return { work: undefined, spentMs }
  const times = counts.map((count) => [count, median(samples.get(count)?.map(({ ms }) => ms) ?? [])] as const)
  let [best, bestMs] = times[0] ?? [1, 0]
  for (const [count, ms] of times) if (ms < clearlyFaster * bestMs) [best, bestMs] = [count, ms]
  const ms = Object.fromEntries(times.map(([count, time]) => [count, rounded(time)]))
  return { work: worked(tokens, best, ms), spentMs }
}

/**
 * The choice for each kind of work. Work that would exceed the budget gets the count of the next smaller kind. `source`
 * is `size` if other processes disturbed the measurement; such a result is not stored.
 */
export const pickThreads = async (options: TrialOptions): Promise<ThreadChoice> => {
  const { budgetMs, sizes, trial } = options
  if (trial.counts.length < 2) return fixedThreads(trial.otherwise, "size")
  const works: Array<ThreadWork> = []
  let leftMs = budgetMs
  let before = 0
  for (const tokens of sizes) {
    if (works.length > 0 && growth * before > leftMs) break
    const { spentMs, work } = await measure(options, tokens)
    if (work === undefined) return fixedThreads(trial.otherwise, "size")
    works.push(work)
    leftMs -= spentMs
    before = Object.values(work.ms).reduce((sum, ms) => sum + ms, 0)
  }
  const [first, ...others] = works
  if (first === undefined) return fixedThreads(trial.otherwise, "size")
  return { source: "measured", works: [first, ...others] }
}
