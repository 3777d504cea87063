// How much memory a process really holds, asked of the system: what an operator's before and after are measured by.
import { readFileSync } from "node:fs"

/** The system's page size on every platform that has /proc here. */
const pageBytes = 4_096

/** The pages of /proc/PID/statm: all that are resident, and those of them that are mapped files or shared. */
const pagesOf = (pid: number): readonly [resident: number, shared: number] => {
  try {
    const [, resident, shared] = readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")
    return [Number(resident ?? 0), Number(shared ?? 0)]
  } catch {
    return [0, 0]
  }
}

/** Resident bytes of a process; 0 where it is gone or the system does not tell. Reads one small file of /proc. */
export const residentBytesOf = (pid: number): number => pagesOf(pid)[0] * pageBytes

/**
 * Those of them that are the process's alone: without mapped files (weights, libraries), which the system can drop when
 * it needs room.
 */
export const privateBytesOf = (pid: number): number => {
  const [resident, shared] = pagesOf(pid)
  return Math.max(0, resident - shared) * pageBytes
}

let newestOwnBytes = 0

/** Resident bytes of this process; those of the newest reading where no file descriptor is free to read them. */
export const ownResidentBytes = (): number => {
  try {
    newestOwnBytes = process.memoryUsage.rss()
  } catch {
    // EMFILE or ENFILE.
  }
  return newestOwnBytes
}
