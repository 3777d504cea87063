// How much processor time a process has used, asked of the system.
import { readFileSync } from "node:fs"

/** Linux reports to programs in hundredths of a second, whatever the kernel's own clock is. */
const tickMs = 10

/** From the text of /proc/PID/stat; undefined if it is none. */
export const processorMsIn = (stat: string): number | undefined => {
  // The name, in parentheses, may contain spaces. Then `state` is field 3 of proc(5), `utime` 14, `stime` 15.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ")
  const ticks = Number(fields[11]) + Number(fields[12])
  return Number.isFinite(ticks) ? ticks * tickMs : undefined
}

/** User and system time of all its threads, milliseconds; undefined if it is gone or there is no /proc. */
export const processorMsOf = (pid: number): number | undefined => {
  try {
    return processorMsIn(readFileSync(`/proc/${pid}/stat`, "latin1"))
  } catch {
    return undefined
  }
}
