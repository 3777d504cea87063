// Finds child processes of this process by the program that they run, so that a test can kill one while it works. Linux only.
import { readdirSync, readFileSync } from "node:fs"

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

/** False for a process that has ended, even if its exit status was not read yet. */
export const isRunning = (pid: number): boolean => {
  const [, fields = ""] = read(`/proc/${pid}/stat`).split(/\) (?=[A-Z] )/)
  return fields !== "" && !fields.startsWith("Z")
}

/** Sends a signal to a process. False if the process has ended in the meantime. */
export const signalIfRunning = (pid: number, signal: NodeJS.Signals): boolean => {
  try {
    return process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false
    throw error
  }
}

/** Process ids of living children whose command line names `program`. */
export const childrenRunning = (program: string, parent = process.pid): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .filter((pid) => {
      // The command's name is in parentheses and may contain any characters, so fields are counted from its end.
      const [, fields = ""] = read(`/proc/${pid}/stat`).split(/\) (?=[A-Z] )/)
      const [state, ppid] = fields.split(" ")
      return state !== "Z" && Number(ppid) === parent && read(`/proc/${pid}/cmdline`).includes(program)
    })
    .map(Number)
