// The most private memory an engine process may have once its model has loaded. The need of a model is known only then:
// from there on it may grow by as much again, and once more if it may open its weights a second time. The limit is set with `prlimit`, which every Debian has; the kernel then
// refuses further memory and the engine fails alone. Not for engines on a GPU, whose drivers count device memory as
// their own.
import { execFile } from "node:child_process"
import { readFileSync } from "node:fs"
import { inForce } from "#confine/Launch.ts"

const prlimit = "/usr/bin/prlimit"
const patienceMs = 5_000

/** For buffers of the longest inputs: a Whisper of large shape takes below 1 GB for them. A guess. */
const leastGrowthBytes = 2 * 1024 ** 3

/** Private writable memory of a process, bytes, which `RLIMIT_DATA` bounds; undefined if /proc does not have it. */
export const dataBytesOf = (pid: number): number | undefined => {
  try {
    const kilobytes = /^VmData:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]
    return kilobytes === undefined ? undefined : Number(kilobytes) * 1024
  } catch {
    return undefined
  }
}

/** Without effect if confinement is off, or the machine has neither /proc nor `prlimit`. */
export const limitMemory = (
  pid: number,
  { growthBytes = leastGrowthBytes, secondCopy = false }: { growthBytes?: number; secondCopy?: boolean } = {},
): void => {
  const loaded = inForce().way === "plain" ? undefined : dataBytesOf(pid)
  if (loaded === undefined) return
  const most = loaded + Math.max(growthBytes, loaded) + (secondCopy ? loaded : 0)
  execFile(prlimit, ["--pid", `${pid}`, `--data=${most}:${most}`], { timeout: patienceMs, env: {} }, () => {})
}
