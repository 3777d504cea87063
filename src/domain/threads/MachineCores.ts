// How many CPU threads this process may use on Linux: the affinity mask, hardware threads that share a core, and the
// CPU limit of the container. Pure: the caller reads the files.

/** Reads a small text file. Undefined if it is missing or unreadable. */
type ReadText = (path: string) => string | undefined

export interface MachineCores {
  /** Hardware threads that the affinity mask allows (`taskset`, cpusets of containers). */
  readonly hardwareThreads: number
  /** Physical cores among them. A virtual machine may hide that two of its processors share one. */
  readonly cores: number
  /** CPU limit of the container in processors, e.g. 1.5. Undefined without a limit. */
  readonly quota: number | undefined
}

/** A list in Linux's form, `0-3,8,10-11`. Undefined for other texts. */
export const parseCpuList = (text: string | undefined): ReadonlyArray<number> | undefined => {
  const list = text?.trim() ?? ""
  if (!/^\d{1,6}(-\d{1,6})?(,\d{1,6}(-\d{1,6})?)*$/.test(list)) return undefined
  const cpus = new Set<number>()
  for (const range of list.split(",")) {
    const [first = 0, last = first] = range.split("-").map(Number)
    // Far more than any machine has: a damaged file must not fill the memory.
    if (last - first >= 65_536) return undefined
    for (let cpu = first; cpu <= last; cpu++) cpus.add(cpu)
  }
  return [...cpus].sort((a, b) => a - b)
}

/** A positive number, or undefined. */
const positive = (text: string | undefined): number | undefined => {
  const value = Number(text?.trim() || Number.NaN)
  return Number.isFinite(value) && value > 0 ? value : undefined
}

/** The folder of a control group and all folders above it, e.g. `/a/b`, `/a`, `` (the root). */
const ancestors = (path: string): ReadonlyArray<string> => {
  const parts = path.split("/").filter((part) => part !== "" && part !== "..")
  return [...parts.map((_, at) => `/${parts.slice(0, parts.length - at).join("/")}`), ""]
}

/** cgroup v2: `cpu.max` holds `max 100000`, or quota and period in microseconds. */
const quotaV2 = (read: ReadText, folder: string): number | undefined => {
  const [quota, period] = (read(`${folder}/cpu.max`) ?? "").trim().split(/\s+/)
  const [used, of] = [positive(quota), positive(period)]
  return used === undefined || of === undefined ? undefined : used / of
}

/** cgroup v1: two files. A quota of -1 means no limit. */
const quotaV1 = (read: ReadText, folder: string): number | undefined => {
  const used = positive(read(`${folder}/cpu.cfs_quota_us`))
  const of = positive(read(`${folder}/cpu.cfs_period_us`))
  return used === undefined || of === undefined ? undefined : used / of
}

const cgroupRoot = "/sys/fs/cgroup"

/**
 * The lowest CPU limit of the process's control group and of the groups above it. Inside a container the path may be
 * the host's and its folder missing; then the root of the mount is the container's group.
 */
const quotaOf = (read: ReadText): number | undefined => {
  const quotas: Array<number | undefined> = []
  for (const line of (read("/proc/self/cgroup") ?? "").split("\n")) {
    const [id, controllers = "", ...rest] = line.split(":")
    const path = rest.join(":")
    if (id === "0" && controllers === "")
      for (const folder of ancestors(path)) quotas.push(quotaV2(read, `${cgroupRoot}${folder}`))
    else if (controllers.split(",").includes("cpu")) {
      for (const mount of new Set([controllers, "cpu", "cpu,cpuacct", "cpuacct,cpu"]))
        for (const folder of ancestors(path)) quotas.push(quotaV1(read, `${cgroupRoot}/${mount}${folder}`))
    }
  }
  const found = quotas.filter((quota) => quota !== undefined)
  return found.length === 0 ? undefined : Math.min(...found)
}

/** Hardware threads that share a core have the same list. Without lists each counts as a core. */
const coresOf = (read: ReadText, cpus: ReadonlyArray<number>): number => {
  const cores = new Set<string>()
  for (const cpu of cpus) {
    const topology = `/sys/devices/system/cpu/cpu${cpu}/topology`
    const siblings = parseCpuList(
      read(`${topology}/core_cpus_list`) ?? read(`${topology}/thread_siblings_list`),
    )
    cores.add(siblings?.includes(cpu) === true ? siblings.join(",") : `only ${cpu}`)
  }
  return cores.size
}

/** `processors`: the runtime's count, for systems without these files. */
export const machineCores = (read: ReadText, processors: number): MachineCores => {
  const allowed = /^Cpus_allowed_list:\s*(\S+)$/m.exec(read("/proc/self/status") ?? "")?.[1]
  const cpus = parseCpuList(allowed)
  if (cpus === undefined) {
    const threads = Math.max(1, Math.floor(processors))
    return { hardwareThreads: threads, cores: threads, quota: undefined }
  }
  return { hardwareThreads: cpus.length, cores: coresOf(read, cpus), quota: quotaOf(read) }
}

/**
 * The most threads that a model may use. A quota is rounded down: with more threads the container is stopped for a part
 * of every period, and llama.cpp's threads wait for each other in busy loops.
 */
export const mostThreads = ({ hardwareThreads, quota }: MachineCores): number =>
  Math.max(1, Math.min(hardwareThreads, Math.floor(quota ?? hardwareThreads)))

/** Threads to use without a measurement: one per physical core. */
export const coreThreads = (machine: MachineCores): number => Math.min(mostThreads(machine), machine.cores)

/** Counts to measure, ascending: 1, 2, 4, … below the cores, the cores, and all hardware threads. */
export const threadCounts = (machine: MachineCores): ReadonlyArray<number> => {
  const counts = new Set<number>()
  for (let count = 1; count < coreThreads(machine); count *= 2) counts.add(count)
  counts.add(coreThreads(machine)).add(mostThreads(machine))
  return [...counts].sort((a, b) => a - b)
}
