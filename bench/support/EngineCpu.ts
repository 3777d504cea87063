// CPU time of a node's engine processes, read from /proc, because an engine has no command channel to a bench.
// Linux only; elsewhere NaN, which the report shows as a dash.
import { readdir, readFile } from "node:fs/promises"

/** USER_HZ: fixed at 100 on every architecture Node runs on. */
const usPerTick = 10_000

export interface ProcessStat {
  readonly parent: number
  readonly cpuUs: number
}

/** Parses /proc/<pid>/stat. The command in its second field may contain spaces and parentheses. */
export const statOf = (text: string): ProcessStat => {
  const fields = text.slice(text.lastIndexOf(")") + 2).split(" ")
  const field = (number: number) => Number(fields[number - 3])
  return { parent: field(4), cpuUs: (field(14) + field(15)) * usPerTick }
}

interface EngineStat {
  readonly pid: number
  readonly cpuUs: number
}

/** The children of `pid`. Linux only; elsewhere none. */
export const enginesOf = async (pid: number): Promise<ReadonlyArray<EngineStat>> => {
  if (process.platform !== "linux") return []
  const names = (await readdir("/proc")).filter((name) => /^\d+$/.test(name))
  const engines: Array<EngineStat> = []
  for (const name of names) {
    // A process may end between the listing and the reading.
    const text = await readFile(`/proc/${name}/stat`, "utf8").catch(() => "")
    if (text === "") continue
    const { cpuUs, parent } = statOf(text)
    if (parent === pid) engines.push({ pid: Number(name), cpuUs })
  }
  return engines
}

/** Sum over the children of `pid`, microseconds. */
export const engineCpuUs = async (pid: number): Promise<number> => {
  if (process.platform !== "linux") return Number.NaN
  return (await enginesOf(pid)).reduce((sum, { cpuUs }) => sum + cpuUs, 0)
}
