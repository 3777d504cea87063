// The choice of threads from measured times; the measurement is a function of the test.
import { expect, it } from "vitest"
import { pickThreads, type Sample } from "#domain/threads/PickThreads.ts"
import {
  describeThreads,
  describeTrial,
  mostOf,
  type ThreadChoice,
  threadsFor,
} from "#domain/threads/ThreadChoice.ts"

/** A machine on which a call takes `cost(tokens, threads)` milliseconds and keeps all of its cores busy. */
const machine = (
  cost: (tokens: number, threads: number) => number,
  cpuShare: (threads: number) => number = (threads) => threads,
) => {
  const runs: Array<readonly [number, number]> = []
  const run = (tokens: number | undefined, threads: number): Promise<Sample> => {
    runs.push([tokens ?? 0, threads])
    const ms = cost(tokens ?? 1, threads)
    return Promise.resolve({ ms, cpuMs: ms * cpuShare(threads) })
  }
  return { runs, run }
}

const pick = ({ run }: ReturnType<typeof machine>, counts: ReadonlyArray<number>, budgetMs = 10_000) =>
  pickThreads({ trial: { counts, otherwise: 2 }, sizes: [1, 8, 32], run, budgetMs })

const chosen = ({ works }: ThreadChoice) => works.map(({ tokens, threads }) => [tokens, threads])

it("takes more threads only where they are clearly faster, for each size of a step", async () => {
  const memoryBound = machine((tokens, threads) => (tokens === 1 ? (threads === 1 ? 20 : 18) : 80 / threads))
  const choice = await pick(memoryBound, [1, 2])
  expect(choice.source).toBe("measured")
  expect(chosen(choice)).toEqual([
    [1, 1],
    [8, 2],
    [32, 2],
  ])
  expect(mostOf(choice)).toBe(2)
  expect(describeThreads(choice)).toBe("1 (1 token), 2 (8 tokens), 2 (32 tokens)")
  expect(describeTrial(choice)).toBe(
    "1 token: 20 ms with 1, 18 ms with 2; 8 tokens: 80 ms with 1, 40 ms with 2; 32 tokens: 80 ms with 1, 40 ms with 2",
  )
})

it("stops at the physical cores where the second thread of a core slows the first", async () => {
  const hyperthreads = machine((_tokens, threads) => ({ 1: 100, 2: 55, 4: 30, 8: 41 })[threads] ?? 0)
  expect(chosen(await pick(hyperthreads, [1, 2, 4, 8]))[0]).toEqual([1, 4])
})

it("leaves short steps on one thread, whatever two would take", async () => {
  const tiny = machine((_tokens, threads) => 4.9 / threads)
  expect(chosen(await pick(tiny, [1, 2]))).toEqual([
    [1, 1],
    [8, 1],
    [32, 1],
  ])
  expect(tiny.runs.every(([, threads]) => threads === 1)).toBe(true)
})

it("ignores single slow runs", async () => {
  let nth = 0
  const noisy = machine((_tokens, threads) => (nth++ % 5 === 4 ? 500 : 40 / threads))
  expect(chosen(await pick(noisy, [1, 2], 100_000))[0]).toEqual([1, 2])
})

it("reports that it is unsure where other processes had a part of the cores", async () => {
  const busy = machine(
    (_tokens, threads) => 40 / threads,
    (threads) => (threads === 1 ? 1 : 1.4),
  )
  expect(await pick(busy, [1, 2])).toEqual({ source: "size", works: [{ threads: 2, ms: {} }] })
})

it("keeps to its time: what would exceed it gets the count of the next smaller step", async () => {
  const slow = machine((tokens, threads) => (400 * tokens) / threads)
  const choice = await pick(slow, [1, 2], 1_500)
  expect(chosen(choice)).toEqual([[1, 2]])
  expect(threadsFor(choice, 32)).toBe(2)
  expect(slow.runs).toEqual([
    [1, 1],
    [1, 2],
  ])
})

it("measures nothing where there is nothing to choose", async () => {
  const one = machine(() => 1)
  expect((await pick(one, [1])).source).toBe("size")
  expect(one.runs).toEqual([])
})

it("gives a step the threads of the size that is nearest by ratio", () => {
  const choice: ThreadChoice = {
    source: "kept",
    works: [
      { tokens: 1, threads: 1, ms: {} },
      { tokens: 8, threads: 2, ms: {} },
      { tokens: 32, threads: 4, ms: {} },
    ],
  }
  expect([1, 2, 3, 8, 15, 17, 512].map((tokens) => threadsFor(choice, tokens))).toEqual([1, 1, 2, 2, 2, 4, 4])
})
