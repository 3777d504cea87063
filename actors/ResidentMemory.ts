// How much memory a process really holds, asked of the system: what an operator's before and after are measured by.
import { readFileSync } from "node:fs"

/** The system's page size on every platform that has /proc here. */
const pageBytes = 4_096

/** Resident bytes of a process; 0 where it is gone or the system does not tell. Reads one small file of /proc. */
export const residentBytesOf = (pid: number): number => {
  try {
    const pages = readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]
    return Number(pages ?? 0) * pageBytes
  } catch {
    return 0
  }
}
