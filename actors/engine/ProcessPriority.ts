// Lets an engine process start behind those who are served: with a lower priority until it has loaded, where the system
// lets the node give it back. Called by EngineProcess; Linux alone, elsewhere nothing happens.
import { readdirSync, readFileSync } from "node:fs"
import { getPriority, setPriority } from "node:os"

/**
 * How much lower. A start takes half a second to a second of a core. At 5 it gets a quarter of one that somebody else wants
 * too, and all of one that nobody wants; others' 99th percentiles while engines came back fell from 1.7, 1.2 and 1.6 times
 * quiet to 1.2, 1.3 and 1.35 (24 faults each, two cores). Much more would let a busy machine starve it.
 */
const lowerBy = 5

/**
 * Whoever has not loaded by then goes on as an equal: on a machine that is full with other work, a start would otherwise
 * take three times as long. A guess, twice what a start takes here while others are served.
 */
const patienceMs = 2_000

/** CAP_SYS_NICE, by its number. */
const sysNice = 1n << 23n

export interface Privileges {
  /** Of `/proc/self`, as they stand there; empty where there are none. */
  readonly status: string
  readonly limits: string
  readonly uidMap: string
  /** The priority to come back to. */
  readonly priority: number
}

/**
 * Whether a priority that was lowered may be raised again: the limit allows it, or the process has the capability. Inside a
 * user namespace it would seem to have that, and has not. Pure.
 */
export const mayRaise = ({ limits, priority, status, uidMap }: Privileges): boolean => {
  const limit = /^Max nice priority\s+(\S+)/m.exec(limits)?.[1]
  // The limit is 20 minus the best priority that may be had.
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

/** Of a process, or nothing where it has ended. */
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
      // Any other is a thread that has just ended. Where the system does not do what it has said, nobody is lowered again.
      if (info?.code === "EACCES" || info?.code === "EPERM") allowed = false
    }
  }
}

export interface Lowered {
  /** Once it has loaded. Every thread has a priority of its own. */
  readonly restore: () => void
  /** It has ended. */
  readonly forget: () => void
}

const untouched: Lowered = { restore: () => {}, forget: () => {} }

/** Right after the start: the threads that a process makes take its priority over. */
export const lower = (pid: number | undefined): Lowered => {
  if (pid === undefined || !allowed) return untouched
  try {
    setPriority(pid, Math.min(19, ownPriority + lowerBy))
  } catch {
    // It has ended already.
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
