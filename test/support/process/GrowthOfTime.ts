// Measures how time grows with size, for code that must be linear. The ratio within one run hardly depends on other work.

const millisecondsOf = (work: () => void): number => {
  const beganMs = performance.now()
  work()
  return performance.now() - beganMs
}

/** Time of `large` over time of `small`, each the best of three, taken alternately. */
export const growthOfTime = (small: () => void, large: () => void): number => {
  const rounds = [1, 2, 3].map(() => [millisecondsOf(small), millisecondsOf(large)] as const)
  return Math.min(...rounds.map(([, ms]) => ms)) / Math.min(...rounds.map(([ms]) => ms))
}
