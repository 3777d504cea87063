// Which GPUs a model may be placed on, pure: those that the operator allows, the one with most free memory first.
import type { NvidiaGpu } from "#domain/models/NvidiaReport.ts"
import { type DeviceState, freeOf } from "./DeviceState.ts"

/** Whether the operator lets models have the GPU: by uuid, its beginning, or index in the order of the PCI bus. */
export const isVisible = ({ index, uuid }: NvidiaGpu, visible: string | undefined): boolean =>
  visible === undefined ||
  visible.split(",").some((named) => {
    const name = named.trim()
    return name === String(index) || (name.startsWith("GPU-") && uuid.startsWith(name))
  })

/** Whether models may be placed on it. A GPU in MIG instances cannot be claimed as one; see docs/operations.md. */
export const isUsable = (gpu: NvidiaGpu, visible: string | undefined): boolean =>
  !gpu.mig && isVisible(gpu, visible)

/** Of devices that the driver shows. */
export const roomiestFirst = <D extends { readonly state: () => DeviceState }>(
  devices: ReadonlyArray<D>,
): ReadonlyArray<D> => {
  const indexOf = (device: D) => device.state().reading?.gpu.index ?? 0
  return devices.toSorted((a, b) => freeOf(b.state()) - freeOf(a.state()) || indexOf(a) - indexOf(b))
}
