// Gives the event loop back between pieces of a long computation, so that the engine's messages and steps are not delayed.

/** Milliseconds without a break. The gateway's bound for its own loop is 10. */
const longestMs = 4

/** Call the function it returns often; it resolves after a turn of the event loop when the last turn was long ago. */
export const breaths = (): (() => Promise<void> | undefined) => {
  let last = performance.now()
  return () => {
    if (performance.now() - last < longestMs) return undefined
    return new Promise((resolve) => {
      setImmediate(() => {
        last = performance.now()
        resolve()
      })
    })
  }
}
