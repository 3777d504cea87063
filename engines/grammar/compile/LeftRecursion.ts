// Finds an automaton that calls itself before it has read a byte. The matcher would then call it for ever.
import type { Deterministic } from "./Determinize.ts"
import type { Shortest } from "./Shortest.ts"

/** Number of such an automaton, or undefined. */
export const leftRecursive = ({ starts, states }: Deterministic, { bytes }: Shortest): number | undefined => {
  /** Automata that are called before a byte is read. */
  const calledFirst = (network: number): ReadonlyArray<number> => {
    const called = new Set<number>()
    const reached = new Set([starts[network]!])
    for (const state of reached)
      for (const { least, most, network, to } of states[state]!.calls) {
        if (most > 0) called.add(network)
        if (least === 0 || bytes[starts[network]!] === 0) reached.add(to)
      }
    return [...called]
  }

  const done = new Uint8Array(starts.length)
  const open = new Uint8Array(starts.length)
  for (let first = 0; first < starts.length; first++) {
    const way: Array<{ readonly network: number; readonly next: Iterator<number> }> = []
    const enter = (network: number) => {
      open[network] = 1
      way.push({ network, next: calledFirst(network).values() })
    }
    if (done[first] === 0) enter(first)
    for (let top = way.at(-1); top !== undefined; top = way.at(-1)) {
      const next = top.next.next()
      if (next.done === true) {
        open[top.network] = 0
        done[top.network] = 1
        way.pop()
      } else if (open[next.value] === 1) return next.value
      else if (done[next.value] === 0) enter(next.value)
    }
  }
  return undefined
}
