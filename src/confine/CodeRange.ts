// How much of a process's private memory is V8's reservation for compiled code. From Node 24 on, V8 maps all of it writable
// at once (509 MiB on Linux x64, measured with 24.21.0 and 26.10.0), and the kernel counts it against RLIMIT_DATA
// although nearly nothing of it is ever touched. Node 22 makes only the used part writable.
import { readFileSync } from "node:fs"

/** Bytes: smaller ones are code that was compiled, as in Node 22. */
const least = 64 * 1024 * 1024

/** @param maps the text of /proc/PID/maps. Pure. */
export const codeRangeIn = (maps: string): number => {
  let bytes = 0
  for (const [, from = "", to = ""] of maps.matchAll(/^([0-9a-f]+)-([0-9a-f]+) rwxp \S+ 00:00 0 *$/gm)) {
    const size = Number.parseInt(to, 16) - Number.parseInt(from, 16)
    if (size >= least) bytes += size
  }
  return bytes
}

let known: number | undefined

/**
 * Bytes in this process, and so in every other one of the same Node. 0 where the system has no such file, which then has no
 * limit of memory either.
 */
export const codeRangeBytes = (): number => {
  if (known !== undefined) return known
  try {
    known = codeRangeIn(readFileSync("/proc/self/maps", "latin1"))
  } catch {
    known = 0
  }
  return known
}
