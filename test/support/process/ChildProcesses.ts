// The child processes of this one by the program they run: to kill one in the middle of its work. Linux.
import { readdirSync, readFileSync } from "node:fs"

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

/** Process ids of living children whose command line names `program`. */
export const childrenRunning = (program: string, parent = process.pid): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      // The command's name is in brackets and may hold any characters, so the fields are counted behind it.
      const [, fields = ""] = read(`/proc/${pid}/stat`).split(/\) (?=[A-Z] )/)
      const [state, ppid] = fields.split(" ")
      return state !== "Z" && Number(ppid) === parent && read(`/proc/${pid}/cmdline`).includes(program)
    })
    .map(Number)
