// What the system tells of the machine: cores, container quota, memory, caches, and how busy it was before the measurements.
// Linux shows all of it; elsewhere the unknown parts are null. Parsers are pure.
import { readFileSync } from "node:fs"
import { cpus, freemem, loadavg, release, totalmem, type } from "node:os"
import { Effect } from "effect"
import { makeUtilization, processorName } from "#actors/device/HostProcessor.ts"
import { readCores } from "#actors/threads/ReadCores.ts"
import type { Machine } from "../report/Document.ts"
import { rounded } from "../report/Document.ts"
import { readBandwidth } from "./ReadBandwidth.ts"

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8").trim()
  } catch {
    return ""
  }
}

const cpuFolder = "/sys/devices/system/cpu"

/** Bytes of a size as the kernel writes it, e.g. `32768K`. */
export const cacheBytesFrom = (size: string): number | null => {
  const [, digits, unit] = /^(\d+)([KMG]?)$/.exec(size) ?? []
  const factors: Readonly<Record<string, number>> = { "": 1, K: 1024, M: 1024 ** 2, G: 1024 ** 3 }
  return digits === undefined ? null : Number(digits) * (factors[unit ?? ""] ?? 1)
}

const lastLevelCache = (): number | null => {
  const sizes = [0, 1, 2, 3, 4].flatMap(
    (at) => cacheBytesFrom(read(`${cpuFolder}/cpu0/cache/index${at}/size`)) ?? [],
  )
  return sizes.length === 0 ? null : Math.max(...sizes)
}

/** What a new process could still have without others being pushed out. */
const availableBytes = (): number => {
  const kilobytes = /^MemAvailable:\s+(\d+) kB/m.exec(read("/proc/meminfo"))?.[1]
  const machine = kilobytes === undefined ? freemem() : Number(kilobytes) * 1024
  const contained = process.constrainedMemory() > 0 ? process.availableMemory() : machine
  return Math.min(machine, contained)
}

/** How long the machine is watched before anything is measured, milliseconds. */
const watchMs = 500

/** To be read before anything is measured; takes about a second. */
export const machineFacts: Effect.Effect<Machine> = Effect.gen(function* () {
  const load = loadavg()[0] ?? 0
  const utilization = makeUtilization()
  yield* Effect.sleep(watchMs)
  const busy = utilization()
  const { cores, hardwareThreads, quota } = readCores()
  const cache = lastLevelCache()
  const bandwidth = yield* readBandwidth(cores, cache ?? 0)
  const confined = process.constrainedMemory()
  return {
    cpu: processorName().trim(),
    cores,
    hardware_threads: hardwareThreads,
    processors: cpus().length,
    quota_cores: quota === undefined ? null : rounded(quota),
    memory_bytes: confined > 0 ? Math.min(confined, totalmem()) : totalmem(),
    memory_available_bytes: availableBytes(),
    last_level_cache_bytes: cache,
    read_gb_per_second: bandwidth,
    load_1m: rounded(load),
    busy_percent: busy,
    system: `${type()} ${release()} ${process.arch}`,
    node: process.version,
  }
})

/** Share of the processors in use above which figures are said to be disturbed; the load where the share is unknown. Guesses. */
const busyPercent = 15
const busyLoad = 0.5

/** A sentence where something else was at work before the measurements; undefined where the machine was quiet. */
export const disturbance = ({
  busy_percent,
  hardware_threads,
  load_1m,
}: Pick<Machine, "busy_percent" | "hardware_threads" | "load_1m">): string | undefined => {
  const isBusy = busy_percent === null ? load_1m / hardware_threads >= busyLoad : busy_percent >= busyPercent
  const share = busy_percent === null ? "" : `${busy_percent} % of its processors in use, `
  return isBusy
    ? `the machine was busy before the measurements (${share}load ${load_1m}): the figures are lower than on a quiet machine`
    : undefined
}
