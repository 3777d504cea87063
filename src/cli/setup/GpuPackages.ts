// The packages of the registry that hold llama.cpp's libraries for GPUs. An installation leaves them out, because they are
// larger than everything else together (docs/install.md), and `edgewise setup` installs them.
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { isInstalled, type RegistryPackage } from "./RegistryPackages.ts"

export const gpuKinds = ["cuda", "vulkan"] as const
export type GpuKind = (typeof gpuKinds)[number]

/** By system and processor. Those of node-llama-cpp 3.21.1; hashes and sizes from the registry on 2026-11-23. */
const packages: Readonly<Record<string, Readonly<Record<GpuKind, ReadonlyArray<RegistryPackage>>>>> = {
  "linux-x64": {
    cuda: [
      {
        name: "@node-llama-cpp/linux-x64-cuda",
        version: "3.21.1",
        integrity:
          "sha512-idsE55VoD/FbvLhnBC9krUJaUoC0XnebseAAnCpm/brKf61HEbu+idgbb5eN6mxkjLSrHtILprJ0nDcUJjVrFg==",
        downloadBytes: 142_850_036,
        installedBytes: 188_693_843,
      },
      // For drivers and GPUs that the other one does not support.
      {
        name: "@node-llama-cpp/linux-x64-cuda-ext",
        version: "3.21.1",
        integrity:
          "sha512-1PuURowccBcks3CCoMe1mTHh5vD0V5bFHMUEgtbI/OSDjpP+Pdbn+lf42CGUrepTzR8kCH1HovQ7d8q6/vuIKA==",
        downloadBytes: 176_679_086,
        installedBytes: 374_197_990,
      },
    ],
    vulkan: [
      {
        name: "@node-llama-cpp/linux-x64-vulkan",
        version: "3.21.1",
        integrity:
          "sha512-flEeSzONQ6OIm5bYKLQf4eEnBzcC5WugFbyPUwkCqyyOFZ8pH0H9ulQ7ZNDLSIczeKneMRJornlyY1Hq7d3GDA==",
        downloadBytes: 27_476_121,
        installedBytes: 84_483_299,
      },
    ],
  },
}

/** The packages of a kind for this machine. Empty if there are none. */
export const gpuPackages = (
  kind: GpuKind,
  platform = `${process.platform}-${process.arch}`,
): ReadonlyArray<RegistryPackage> => packages[platform]?.[kind] ?? []

/** Whether all packages of a kind are installed. */
export const hasGpuLibraries = (kind: GpuKind): boolean => {
  const wanted = gpuPackages(kind)
  return wanted.length > 0 && wanted.every(isInstalled)
}

/** What is wrong with the GPU that a catalog entry asks for, if its libraries are not installed. */
export const gpuProblem = (
  { id, options }: Pick<ModelEntry, "id" | "options">,
  has: (kind: GpuKind) => boolean = hasGpuLibraries,
): string | undefined => {
  const kind = gpuKinds.find((one) => one === options.gpu)
  if (kind === undefined || has(kind)) return undefined
  return gpuPackages(kind).length === 0
    ? `${id}: options.gpu is "${kind}", and llama.cpp has no ${kind} libraries for ${process.platform} ${process.arch}`
    : `${id}: options.gpu is "${kind}", and the ${kind} libraries are not installed: run edgewise setup ${kind}`
}
