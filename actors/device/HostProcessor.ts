// The host processor as a device: its name, how much memory the node may fill, how busy and how warm it is. Read by
// Device and by the operator endpoints; knows no models.
import { readFile } from "node:fs/promises"
import { cpus, totalmem } from "node:os"

/**
 * Share of the machine's memory that the node may fill. The rest is the file cache's and the system's. A guess; the
 * estimate of a claim is a guess too, and leans high.
 */
const memoryShare = 0.9

/** The memory of the machine, or of the container that the node is confined to, where that is less. */
export const memoryBudgetBytes = (): number => {
  const confined = process.constrainedMemory()
  const totalBytes = confined > 0 ? Math.min(confined, totalmem()) : totalmem()
  return Math.floor(totalBytes * memoryShare)
}

export const processorName = (): string => cpus()[0]?.model ?? "host processor"

/** Milliseconds of all processors since the system started. */
export const processorTimes = () => {
  let idle = 0
  let total = 0
  for (const { times } of cpus()) {
    idle += times.idle
    total += times.idle + times.irq + times.nice + times.sys + times.user
  }
  return { idle, total }
}

/** Share of all processors' time in use since it was last asked, percent, rounded. */
export const makeUtilization = (): (() => number) => {
  let last = processorTimes()
  return () => {
    const before = last
    last = processorTimes()
    const total = last.total - before.total
    return total <= 0 ? 0 : Math.round((1 - (last.idle - before.idle) / total) * 100)
  }
}

/** The first thermal zone that Linux shows, in millidegrees. */
const temperatureFile = "/sys/class/thermal/thermal_zone0/temp"

/** Degrees Celsius; 0 where the system has no sensor that it shows. */
export const readTemperature = (): Promise<number> =>
  readFile(temperatureFile, "utf8").then(
    (text) => Math.round(Number(text) / 1000) || 0,
    () => 0,
  )
