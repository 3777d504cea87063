// Finds processes that this one has started, also by the program that they run, so that a test can stop or kill one while it works. Linux only.
import { readdirSync, readFileSync } from "node:fs"

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8")
  } catch {
    return ""
  }
}

/** State and parent of a process. Empty state: there is none. */
const statOf = (pid: number): { readonly state: string; readonly parent: number } => {
  // The command's name is in parentheses and may contain any characters, so fields are counted from its end.
  const [, fields = ""] = read(`/proc/${pid}/stat`).split(/\) (?=[A-Z] )/)
  const [state = "", parent] = fields.split(" ")
  return { state, parent: Number(parent) }
}

const all = (): ReadonlyArray<number> =>
  readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)

/** False for a process that has ended, even if its exit status was not read yet. */
export const isRunning = (pid: number): boolean => !["", "Z"].includes(statOf(pid).state)

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
  all().filter((pid) => {
    const stat = statOf(pid)
    return stat.state !== "Z" && stat.parent === parent && read(`/proc/${pid}/cmdline`).includes(program)
  })

/** Process ids of all processes that `root`, or a process below it, has started. */
export const descendants = (root = process.pid): ReadonlyArray<number> => {
  const children = Map.groupBy(all(), (pid) => statOf(pid).parent)
  const below = (parent: number): ReadonlyArray<number> =>
    (children.get(parent) ?? []).flatMap((pid) => [pid, ...below(pid)])
  return below(root)
}
