// Where and when a bench ran; printed above every result, because a figure is valid for its machine only.
import { availableParallelism, cpus, loadavg, release, totalmem, type } from "node:os"

export interface Machine {
  /** ISO 8601, UTC. */
  readonly startedAt: string
  readonly cpu: string
  readonly cores: number
  readonly memoryGiB: number
  readonly system: string
  readonly node: string
  /** Runnable processes in the last minute, before the bench added its own: other load of the machine. */
  readonly loadBefore: number
}

export const describeMachine = (now: Date): Machine => ({
  startedAt: now.toISOString(),
  cpu: cpus()[0]?.model.trim() ?? "unknown",
  cores: availableParallelism(),
  memoryGiB: Math.round((totalmem() / 2 ** 30) * 10) / 10,
  system: `${type()} ${release()} ${process.arch}`,
  node: process.version,
  loadBefore: Math.round((loadavg()[0] ?? 0) * 100) / 100,
})

export const machineLine = (machine: Machine): string =>
  `${machine.startedAt} · ${machine.cpu}, ${machine.cores} cores, ${machine.memoryGiB} GiB · ${machine.system} · ` +
  `node ${machine.node} · load before ${machine.loadBefore}`
