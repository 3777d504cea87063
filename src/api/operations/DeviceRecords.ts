// The node's devices as records of protocol 12.7: the GPUs where the driver shows some, else the host processor with
// the node's memory budget as its memory.
import { Effect } from "effect"
import { Device } from "#actors/device/Device.ts"
import { ownResidentBytes, residentBytesOf } from "#actors/device/ResidentMemory.ts"
import { decoderPids, heldByNode } from "#actors/model/MemoryWatch.ts"
import { ModelRegistry } from "#actors/model/ModelRegistry.ts"
import type { ModelSnapshot } from "#actors/model/ModelSnapshot.ts"
import { Redeployment } from "#actors/model/Redeployment.ts"
import { type DeviceMemory, statusMemory, toMb, usedMemory } from "#domain/models/DeviceMemory.ts"
import type { NvidiaGpu } from "#domain/models/NvidiaReport.ts"

interface DeviceFacts {
  readonly index: number
  readonly name: string
  readonly memory: DeviceMemory
  readonly gpuPercent: number
  readonly memoryPercent: number
  readonly temperatureC: number
}

interface DeviceProcess {
  readonly pid: number
  readonly name: string
  readonly bytes: number
}

interface DevicesNow {
  readonly devices: ReadonlyArray<DeviceFacts>
  readonly processes: ReadonlyArray<DeviceProcess>
}

/** The records need numbers: a value that a GPU does not report is 0, as for a host without a sensor. */
const gpuFacts = (gpu: NvidiaGpu): DeviceFacts => ({
  index: gpu.index,
  name: gpu.name,
  memory: { totalBytes: gpu.totalBytes, usedBytes: gpu.usedBytes, freeBytes: gpu.freeBytes },
  gpuPercent: gpu.gpuPercent ?? 0,
  memoryPercent: gpu.memoryPercent ?? 0,
  temperatureC: gpu.temperatureC ?? 0,
})

/** This process, the decoders' and the engines', with their present memory. */
const hostProcesses = (
  views: ReadonlyArray<ModelSnapshot>,
  decoders: ReadonlyArray<number>,
): ReadonlyArray<DeviceProcess> => [
  { pid: process.pid, name: "edgewise", bytes: ownResidentBytes() },
  ...decoders.map((pid) => ({ pid, name: "decoder", bytes: residentBytesOf(pid) })),
  ...views.flatMap(({ entry, host }) => {
    const pid = host?.gauges().pid
    return pid === undefined || host === undefined
      ? []
      : [{ pid, name: `engine ${entry.id}`, bytes: host.heldBytes() }]
  }),
]

/** `now` reads the driver again, for a before and an after. */
export const devicesNow = (
  now: boolean,
): Effect.Effect<DevicesNow, never, Device | ModelRegistry | Redeployment> =>
  Effect.gen(function* () {
    const device = yield* Device
    const views = [...(yield* ModelRegistry).all(), ...(yield* Redeployment).leaving()]
    const { gpus, processes } = yield* now ? device.nvidiaNow : device.nvidia
    if (gpus.length > 0) {
      return {
        devices: gpus.map(gpuFacts),
        processes: processes.map(({ name, pid, usedBytes = 0 }) => ({ pid, name, bytes: usedBytes })),
      }
    }
    const decoders = (yield* decoderPids)()
    const { budgetBytes, name } = device.host()
    const memory = { totalBytes: budgetBytes, usedBytes: heldByNode(views, decoders) }
    const host: DeviceFacts = {
      index: 0,
      name,
      memory,
      gpuPercent: yield* device.utilization,
      memoryPercent: Math.min(100, Math.round(usedMemory(memory).percent_used)),
      temperatureC: yield* device.temperature,
    }
    return { devices: [host], processes: hostProcesses(views, decoders) }
  })

/** All devices together, for the purge's before and after. */
export const totalMemory = ({ devices }: DevicesNow): DeviceMemory => ({
  totalBytes: devices.reduce((sum, { memory }) => sum + memory.totalBytes, 0),
  usedBytes: devices.reduce((sum, { memory }) => sum + memory.usedBytes, 0),
})

/** An element of `gpus`. */
export const gpuRecord = (device: DeviceFacts) => ({
  index: device.index,
  name: device.name,
  memory: statusMemory(device.memory),
  utilization: { gpu_percent: device.gpuPercent, memory_percent: device.memoryPercent },
  temperature_c: device.temperatureC,
})

/** An element of `processes`. */
export const processRecord = ({ bytes, name, pid }: DeviceProcess) => ({ pid, name, memory_mb: toMb(bytes) })
