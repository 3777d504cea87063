// A neighbour: a process that computes, at the nice value of its first argument; all the time, or for the milliseconds of its second
// argument in turn with a rest of the same length. It computes in slices, so that it notices when the bench ends, and ends too.
import { setPriority } from "node:os"
import { serveCommands } from "../support/CommandChannel.ts"

const sliceMs = 20

setPriority(Number(process.argv[2]))

/** Neighbours that were started together rest together. */
const pulseMs = Number(process.argv[3] ?? Number.POSITIVE_INFINITY)
const startedMs = performance.now()

const compute = (): void => {
  const nowMs = performance.now()
  const pulses = Math.floor((nowMs - startedMs) / pulseMs)
  if (pulses % 2 === 1) {
    setTimeout(compute, startedMs + (pulses + 1) * pulseMs - nowMs)
    return
  }
  while (performance.now() < nowMs + sliceMs);
  setImmediate(compute)
}
compute()

const commands = {
  /** Processor time so far, microseconds. */
  cpuUs: (): number => {
    const { system, user } = process.cpuUsage()
    return system + user
  },
}

export type NeighbourCommands = typeof commands

serveCommands(commands)
