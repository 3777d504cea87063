// Where a catalog entry is computed. Pure; read by the Model actor, which claims memory there.
import type { ModelEntry } from "./ModelEntry.ts"

/** `nvidia`: on the GPU where the node has one, else on the host. */
export type Placement = "host" | "nvidia"

/** Vulkan and Metal devices have no ledger here: their models count as the host's. */
export const placementOf = (entry: ModelEntry): Placement => {
  const { ep, gpu } = entry.options
  return gpu === "auto" || gpu === "cuda" || ep === "cuda" ? "nvidia" : "host"
}

/** Whether no part of the model is computed on a GPU of any kind. */
export const isOnProcessor = ({ options: { ep = "cpu", gpu = "off" } }: ModelEntry): boolean =>
  gpu === "off" && ep === "cpu"
