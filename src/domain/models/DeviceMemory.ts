// Device memory in the units of protocol 12.8. Pure.

const mebibyte = 1024 * 1024
const gibibyte = 1024 * mebibyte

export interface DeviceMemory {
  readonly totalBytes: number
  readonly usedBytes: number
  /** Given if a driver keeps some memory for itself: then less than what is not used. */
  readonly freeBytes?: number
}

const freeOf = ({ freeBytes, totalBytes, usedBytes }: DeviceMemory): number =>
  Math.max(0, freeBytes ?? totalBytes - usedBytes)

export const toMb = (bytes: number): number => Math.round(bytes / mebibyte)

const twoDecimals = (value: number): number => Math.round(value * 100) / 100
const toGb = (bytes: number): number => twoDecimals(bytes / gibibyte)
const percent = (part: number, whole: number): number => (whole === 0 ? 0 : twoDecimals((part / whole) * 100))

export const usedMemory = ({ totalBytes, usedBytes }: DeviceMemory) => ({
  used_gb: toGb(usedBytes),
  total_gb: toGb(totalBytes),
  percent_used: percent(usedBytes, totalBytes),
})

/** The record of GET /v1/gpu/memory (protocol 12.9). */
export const memoryRecord = (memory: DeviceMemory) => ({
  ...usedMemory(memory),
  free_gb: toGb(freeOf(memory)),
  percent_free: percent(freeOf(memory), memory.totalBytes),
})

/** The `memory` of a device in GET /v1/gpu/status (protocol 12.7). */
export const statusMemory = (memory: DeviceMemory) => ({
  total_mb: toMb(memory.totalBytes),
  used_mb: toMb(memory.usedBytes),
  free_mb: toMb(freeOf(memory)),
  ...usedMemory(memory),
  free_gb: toGb(freeOf(memory)),
})

export const freedGb = (before: DeviceMemory, after: DeviceMemory): number =>
  toGb(Math.max(0, before.usedBytes - after.usedBytes))
