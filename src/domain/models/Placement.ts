// Where a catalog entry is computed. Pure.
import type { ModelEntry } from "./ModelEntry.ts"

/** `nvidia`: on a GPU if the node has one, else on the host. */
export type Placement = "host" | "nvidia"

/** The memory of Vulkan and Metal devices is not tracked, so their models count as the host's. */
export const placementOf = (entry: ModelEntry): Placement => {
  const { ep, gpu } = entry.options
  return gpu === "auto" || gpu === "cuda" || ep === "cuda" ? "nvidia" : "host"
}

/** True if no part of the model is computed on a GPU of any kind. */
export const isOnProcessor = ({ options: { ep = "cpu", gpu = "off" } }: ModelEntry): boolean =>
  gpu === "off" && ep === "cpu"
