// Where a catalog entry wants to be computed, and whether it says so in words that its engine knows. Pure; asked by the
// catalog loader, which refuses a wrong word at the start, and by the Model actor, which claims memory where it says.
import type { ModelEntry } from "./Model.ts"

/** `options.gpu` of the llama adapter. */
export const gpuModes = ["off", "auto", "cuda", "vulkan", "metal"] as const

/** `options.ep` of the ONNX adapters: ONNX Runtime's execution provider. */
export const executionProviders = ["cpu", "cuda"] as const

/** `nvidia`: on the GPU where the node has one, else on the host. */
export type Placement = "host" | "nvidia"

const setting = (
  entry: ModelEntry,
): { readonly name: string; readonly allowed: ReadonlyArray<string> } | undefined => {
  if (entry.adapter === "llama-gguf") return { name: "gpu", allowed: gpuModes }
  return entry.adapter.endsWith("-onnx") ? { name: "ep", allowed: executionProviders } : undefined
}

/** What is wrong with the entry's word for its device; undefined where nothing is. */
export const placementProblem = (entry: ModelEntry): string | undefined => {
  const known = setting(entry)
  for (const name of ["gpu", "ep"]) {
    const value = entry.options[name]
    if (value === undefined) continue
    if (known?.name !== name) return `options.${name} is not a setting of ${entry.adapter}`
    if (typeof value !== "string" || !known.allowed.includes(value))
      return `options.${name} must be one of ${known.allowed.join(", ")}`
  }
  return undefined
}

/** Vulkan and Metal devices have no ledger here: their models count as the host's. */
export const placementOf = (entry: ModelEntry): Placement => {
  const { ep, gpu } = entry.options
  return gpu === "auto" || gpu === "cuda" || ep === "cuda" ? "nvidia" : "host"
}
