// A neighbour: a process that computes all the time, at the nice value of its argument. It computes in slices, so that it
// notices when the bench ends, and ends too.
import { setPriority } from "node:os"
import { serveCommands } from "../support/CommandChannel.ts"

const sliceMs = 20

setPriority(Number(process.argv[2]))

const compute = (): void => {
  const untilMs = performance.now() + sliceMs
  while (performance.now() < untilMs);
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
