// Measures how time grows with size, for code that must be linear.

/** Milliseconds of processor time that a measurement takes at least: the system counts a thread's time at ticks of up to 10 ms. */
const leastMs = 60

/** Processor time of this thread, which goes on only while it works: a long work waits for other programs more often than a short one. */
const threadMs = (): number => {
  // Node's types lack it.
  const { threadCpuUsage } = process as unknown as { readonly threadCpuUsage: () => NodeJS.CpuUsage }
  const { system, user } = threadCpuUsage()
  return (system + user) / 1_000
}

/** Of one call, the mean of as many as it takes. */
const millisecondsOf = (work: () => void): number => {
  const before = threadMs()
  let calls = 0
  let usedMs = 0
  while (usedMs < leastMs) {
    work()
    calls++
    usedMs = threadMs() - before
  }
  return usedMs / calls
}

/** Time of `large` over time of `small`, each the best of three, taken alternately. */
export const growthOfTime = (small: () => void, large: () => void): number => {
  const rounds = [1, 2, 3].map(() => [millisecondsOf(small), millisecondsOf(large)] as const)
  return Math.min(...rounds.map(([, ms]) => ms)) / Math.min(...rounds.map(([ms]) => ms))
}
