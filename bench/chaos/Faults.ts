// Faults of an engine process, caused from outside with the system's own means. Linux only.
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { promisify } from "node:util"
import { Effect } from "effect"
import { ChildFailed } from "../support/Child.ts"

export const faults = ["SIGKILL", "SIGSEGV", "SIGSTOP", "out of memory"] as const
export type Fault = (typeof faults)[number]

/** Bytes of address space that a process may still allocate once its memory is "full". */
const leftBytes = 1024 * 1024

const statusOf = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/status`, "latin1")
  } catch {
    return ""
  }
}

/** True if the process is gone or a zombie. */
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

/** Signals are sent; for "out of memory", every allocation beyond a megabyte fails from now on. */
export const commit = (fault: Fault, pid: number): Effect.Effect<void, ChildFailed> =>
  fault === "out of memory" ? fillMemory(pid) : Effect.sync(() => void process.kill(pid, fault))
