// Starts an engine process with a lower priority than requests being served, until it has loaded, if the system
// lets the node restore it. Linux only; elsewhere it has no effect.
import { readdirSync, readFileSync } from "node:fs"
import { getPriority, setPriority } from "node:os"

/**
 * How much lower. A start takes half a second to a second of a core. At 5 it gets a quarter of a core that other work needs
 * too, and all of an idle one; others' 99th percentiles while engines restarted fell from 1.7, 1.2 and 1.6 times
 * the quiet figure to 1.2, 1.3 and 1.35 (24 faults each, two cores). A much lower priority would let a busy machine starve it.
 */
const lowerBy = 5

/**
 * A process that has not loaded by then gets its priority back: on a machine that is full with other work, a start would otherwise
 * take three times as long. A guess, twice what a start takes here while requests are served.
 */
const patienceMs = 2_000

/** CAP_SYS_NICE, by its number. */
const sysNice = 1n << 23n

export interface Privileges {
  /** The values in `/proc/self`; empty if there are none. */
  readonly status: string
  readonly limits: string
  readonly uidMap: string
  /** The priority to restore. */
  readonly priority: number
}

/**
 * Whether a lowered priority may be raised again: the limit allows it, or the process has the capability. Inside a
 * user namespace the capability is listed but has no effect. Pure.
 */
export const mayRaise = ({ limits, priority, status, uidMap }: Privileges): boolean => {
  const limit = /^Max nice priority\s+(\S+)/m.exec(limits)?.[1]
  // The limit is 20 minus the best priority that is allowed.
  if (limit === "unlimited" || Number(limit) >= 20 - priority) return true
  const capabilities = BigInt(`0x${/^CapEff:\s*([0-9a-f]+)$/m.exec(status)?.[1] ?? "0"}`)
  return (capabilities & sysNice) !== 0n && /^\s*0\s+0\s+4294967295\s*$/.test(uidMap)
}

const read = (path: string): string => {
  try {
    return readFileSync(path, "latin1")
  } catch {
    return ""
  }
}

const ownPriority = getPriority()
let allowed = mayRaise({
  status: read("/proc/self/status"),
  limits: read("/proc/self/limits"),
  uidMap: read("/proc/self/uid_map"),
  priority: ownPriority,
})

/** The priority of a process; undefined if it has ended. */
const threadsOf = (pid: number): ReadonlyArray<string> => {
  try {
    return readdirSync(`/proc/${pid}/task`)
  } catch {
    return []
  }
}

const raise = (pid: number): void => {
  for (const thread of threadsOf(pid)) {
    try {
      setPriority(Number(thread), ownPriority)
    } catch (cause) {
      const { info } = cause as { readonly info?: { readonly code?: string } }
      // Any other error is a thread that has just ended. If the system does not do what it has reported, no process is
      // lowered again.
      if (info?.code === "EACCES" || info?.code === "EPERM") allowed = false
    }
  }
}

interface Lowered {
  /** Call once it has loaded. Every thread has a priority of its own. */
  readonly restore: () => void
  /** Call when it has ended. */
  readonly forget: () => void
}

const untouched: Lowered = { restore: () => {}, forget: () => {} }

/** Call right after the start: the threads that a process makes inherit its priority. */
export const lower = (pid: number | undefined): Lowered => {
  if (pid === undefined || !allowed) return untouched
  try {
    setPriority(pid, Math.min(19, ownPriority + lowerBy))
  } catch {
    // The process has ended already.
    return untouched
  }
  const patience = setTimeout(() => raise(pid), patienceMs).unref()
  return {
    restore: () => {
      clearTimeout(patience)
      raise(pid)
    },
    forget: () => clearTimeout(patience),
  }
}
