// CPU time of a node's engine processes, read from /proc, because an engine has no command channel to a bench.
// Linux only; elsewhere NaN, which the report shows as a dash.
import { readdirSync, readFileSync } from "node:fs"
import { processorMsOf } from "#actors/device/ProcessorTime.ts"

/** The processes that any thread of this process started. @throws where there is no /proc, or the process is gone */
export const childrenOf = (pid: number): ReadonlyArray<number> =>
  readdirSync(`/proc/${pid}/task`).flatMap((task) =>
    readFileSync(`/proc/${pid}/task/${task}/children`, "latin1")
      .trim()
      .split(" ")
      .filter(Boolean)
      .map(Number),
  )

/** Sum over the children of `pid`, microseconds. One that ends meanwhile counts 0. */
export const engineCpuUs = (pid: number): number =>
  process.platform === "linux"
    ? childrenOf(pid).reduce((sum, child) => sum + 1_000 * (processorMsOf(child) ?? 0), 0)
    : Number.NaN
