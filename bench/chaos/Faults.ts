// What is done to an engine process, from outside and with the system's own means. Called by the trials. Linux alone.
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { promisify } from "node:util"
import { Effect } from "effect"
import { ChildFailed } from "../support/Child.ts"

export const faults = ["SIGKILL", "SIGSEGV", "SIGSTOP", "out of memory"] as const
export type Fault = (typeof faults)[number]

/** Address space beyond what it has that a process may still get once its memory is "full". */
const leftBytes = 1024 * 1024

const statusOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/status`, "latin1")
  } catch {
    return ""
  }
}

/** Gone, or dead and not yet buried. */
export const isDead = (pid: number): boolean => {
  const status = statusOf(pid)
  return status === "" || /^State:\s+[ZX]/m.test(status)
}

const fillMemory = (pid: number): Effect.Effect<void, ChildFailed> =>
  Effect.tryPromise({
    try: () => {
      const kB = Number(/^VmSize:\s+(\d+) kB/m.exec(statusOf(pid))?.[1] ?? "0")
      return promisify(execFile)("prlimit", [`--pid=${pid}`, `--as=${kB * 1024 + leftBytes}`])
    },
    catch: (cause) => new ChildFailed({ child: "prlimit", detail: String(cause) }),
  })

/** Every allocation beyond a megabyte fails from now on; signals are sent. */
export const commit = (fault: Fault, pid: number): Effect.Effect<void, ChildFailed> =>
  fault === "out of memory" ? fillMemory(pid) : Effect.sync(() => void process.kill(pid, fault))
