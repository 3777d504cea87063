// Facts about the machine: cores, container quota, memory, caches, and its load before the measurements. Complete on
// Linux; on other systems the unknown parts are null. Parsers are pure.

import { readFileSync } from "node:fs"
import { cpus, freemem, loadavg, release, totalmem, type } from "node:os"
import { Effect } from "effect"
import { makeUtilization, processorName } from "#actors/device/HostProcessor.ts"
import { readCores } from "#actors/threads/ReadCores.ts"
import { rounded } from "#harness/report/Figure.ts"
import { digits } from "#harness/report/Format.ts"
import type { Machine } from "../report/Document.ts"
import { readBandwidth } from "./ReadBandwidth.ts"

const read = (path: string): string => {
  try {
    return readFileSync(path, "utf8").trim()
  } catch {
    return ""
  }
}

const cpuFolder = "/sys/devices/system/cpu"

/** Bytes of a size in the kernel's form, e.g. `32768K`. */
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

/** Memory that a new process could use without displacing other processes. */
const availableBytes = (): number => {
  const kilobytes = /^MemAvailable:\s+(\d+) kB/m.exec(read("/proc/meminfo"))?.[1]
  const machine = kilobytes === undefined ? freemem() : Number(kilobytes) * 1024
  const contained = process.constrainedMemory() > 0 ? process.availableMemory() : machine
  return Math.min(machine, contained)
}

/** How long the machine's load is observed before anything is measured, milliseconds. */
const watchMs = 500

/** Must be read before anything is measured. Takes about a second. */
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

/**
 * Share of the processors in use from which figures count as disturbed, and the load per thread if the share is
 * unknown. Guesses.
 */
const busyPercent = 15
const busyLoad = 0.5

/** A sentence if other processes were active before the measurements. Undefined if the machine was idle. */
export const disturbance = ({
  busy_percent,
  hardware_threads,
  load_1m,
}: Pick<Machine, "busy_percent" | "hardware_threads" | "load_1m">): string | undefined => {
  const isBusy = busy_percent === null ? load_1m / hardware_threads >= busyLoad : busy_percent >= busyPercent
  const share = busy_percent === null ? "" : `${busy_percent} % of its processors in use, `
  return isBusy
    ? `the machine was busy before the measurements (${share}load ${digits(load_1m)}): the figures are lower than on a quiet machine`
    : undefined
}
