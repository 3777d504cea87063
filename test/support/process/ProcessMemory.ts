// Resident memory of other processes, read from /proc. Linux only.
import { readFileSync, writeFileSync } from "node:fs"

/** Resident bytes now, and their peak since the start or `forgetPeak`; undefined if the process has ended. */
export const residentBytes = (pid: number): { readonly now: number; readonly peak: number } | undefined => {
  try {
    const text = readFileSync(`/proc/${pid}/status`, "utf8")
    const of = (name: string) => Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(text)?.[1] ?? 0) * 1024
    return { now: of("VmRSS"), peak: of("VmHWM") }
  } catch {
    return undefined
  }
}

/** Sets the peak to the resident memory of now: the value 5 of `clear_refs` (proc(5)). */
export const forgetPeak = (pid: number): void => writeFileSync(`/proc/${pid}/clear_refs`, "5")
