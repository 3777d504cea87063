// Resident memory of other processes, by /proc. Linux.
import { readFileSync, writeFileSync } from "node:fs"

/** Resident bytes now, and their peak since the start or `forgetPeak`; undefined where the process has gone. */
export const residentBytes = (pid: number): { readonly now: number; readonly peak: number } | undefined => {
  try {
    const text = readFileSync(`/proc/${pid}/status`, "utf8")
    const of = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024
    return { now: of("VmRSS"), peak: of("VmHWM") }
  } catch {
    return undefined
  }
}

/** 5 sets the peak to what is resident now (proc(5)). */
export const forgetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, "5")
