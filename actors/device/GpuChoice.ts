// Which GPU a model is placed on, pure: of those that the operator allows, the one with most free memory.
import type { NvidiaGpu } from "#domain/models/NvidiaReport.ts"
import { promisedOf, type Shares, unsettledOf } from "./DeviceLedger.ts"
import type { NvidiaReading } from "./NvidiaSmi.ts"

/** Share of a GPU's memory that models may claim: the driver and the display need some. A guess. */
export const gpuShare = 0.95

/** Whether the operator lets models have the GPU: by uuid, its beginning, or index in the order of the PCI bus. */
export const isVisible = ({ index, uuid }: NvidiaGpu, visible: string | undefined): boolean =>
  visible === undefined ||
  visible.split(",").some((named) => {
    const name = named.trim()
    return name === String(index) || (name.startsWith("GPU-") && uuid.startsWith(name))
  })

/** Others may use the device as well: neither our books nor the driver's reading alone tells what is free. */
export const freeOf = (gpu: NvidiaGpu, shares: Shares): number =>
  Math.min(Math.floor(gpu.totalBytes * gpuShare) - promisedOf(shares), gpu.freeBytes - unsettledOf(shares))

/** The GPUs that a model may be placed on, the one with most free memory first. */
export const roomiestFirst = (
  reading: NvidiaReading,
  visible: string | undefined,
  sharesOf: (gpu: NvidiaGpu) => Shares,
): ReadonlyArray<NvidiaGpu> =>
  reading.gpus
    // A GPU in MIG instances cannot be claimed as one; see docs/operations.md.
    .filter((gpu) => !gpu.mig && isVisible(gpu, visible))
    .toSorted((a, b) => freeOf(b, sharesOf(b)) - freeOf(a, sharesOf(a)) || a.index - b.index)
