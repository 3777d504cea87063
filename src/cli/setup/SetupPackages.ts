// The packages of the registry that an installation leaves out and `edgewise setup` installs (docs/install.md): llama.cpp's libraries for GPUs,
// which are larger than everything else together, and the library of WebRTC calls, which are off by default. `npm ci` in a checkout installs
// the latter.
import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { type Config, settings } from "#config/Settings.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"

export const gpuKinds = ["cuda", "vulkan"] as const
type GpuKind = (typeof gpuKinds)[number]

export const setupKinds = [...gpuKinds, "webrtc"] as const
export type SetupKind = (typeof setupKinds)[number]

export interface SetupPackage {
  readonly name: string
  readonly version: string
  /** Of the registry's tarball, as in a lock file. */
  readonly integrity: string
  readonly downloadBytes: number
  readonly installedBytes: number
}

/**
 * By system and processor, for glibc. Those of node-llama-cpp 3.21.1 and node-datachannel 0.33.4; hashes and sizes from the registry on
 * 2026-11-23 and 2026-11-27.
 */
const packages: Readonly<Record<string, Readonly<Partial<Record<SetupKind, ReadonlyArray<SetupPackage>>>>>> =
  {
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
      webrtc: [
        {
          name: "@node-datachannel/linux-x64-gnu",
          version: "0.33.4",
          integrity:
            "sha512-xN0x3lcQ87qwOAmf1dBLVWrYY40LQ7pM4Y9wuNjP+EtN4IwiXqrhPdgupzGAElxna+n2NgBG0gT60dZpgoYU2Q==",
          downloadBytes: 3_486_574,
          installedBytes: 9_061_249,
        },
      ],
    },
    "linux-arm64": {
      webrtc: [
        {
          name: "@node-datachannel/linux-arm64-gnu",
          version: "0.33.4",
          integrity:
            "sha512-rR4yjwxpI1miLSrruLGcfR9yfw0Qebw+Twt+u+lKsL9SwmXxTm5pJhUAa9RU+c35oZ98IyAxGFjRwwq85BTbog==",
          downloadBytes: 3_289_319,
          installedBytes: 8_540_127,
        },
      ],
    },
  }

/** The packages of a kind for this machine. Empty if there are none. */
export const setupPackages = (
  kind: SetupKind,
  platform = `${process.platform}-${process.arch}`,
): ReadonlyArray<SetupPackage> => packages[platform]?.[kind] ?? []

/** Whether a package is installed with this version, where the program looks for it. */
const isInstalled = ({ name, version }: Pick<SetupPackage, "name" | "version">): boolean =>
  (createRequire(import.meta.url).resolve.paths(name) ?? []).some((folder) => {
    const path = join(folder, name, "package.json")
    return (
      existsSync(path) && (JSON.parse(readFileSync(path, "utf8")) as { version?: string }).version === version
    )
  })

/** Whether all packages of a kind are installed. */
export const hasLibraries = (kind: SetupKind): boolean => {
  const wanted = setupPackages(kind)
  return wanted.length > 0 && wanted.every(isInstalled)
}

const megabytes = (bytes: number): string => `${Math.round(bytes / 1e6)} MB`

/** What the download of a kind costs, e.g. `320 MB to download, 563 MB on disk`. */
export const costOf = (wanted: ReadonlyArray<SetupPackage>): string => {
  const sum = (key: "downloadBytes" | "installedBytes") => wanted.reduce((total, one) => total + one[key], 0)
  return `${megabytes(sum("downloadBytes"))} to download, ${megabytes(sum("installedBytes"))} on disk`
}

/** What is wrong with the GPU that a catalog entry asks for, if its libraries are not installed. */
export const gpuProblem = (
  { id, options }: Pick<ModelEntry, "id" | "options">,
  has: (kind: GpuKind) => boolean = hasLibraries,
): string | undefined => {
  const kind = gpuKinds.find((one) => one === options.gpu)
  if (kind === undefined || has(kind)) return undefined
  return setupPackages(kind).length === 0
    ? `${id}: options.gpu is "${kind}", and llama.cpp has no ${kind} libraries for ${process.platform} ${process.arch}`
    : `${id}: options.gpu is "${kind}", and the ${kind} libraries are not installed: run edgewise setup ${kind}`
}

/** What is wrong with a node that takes WebRTC calls, if their library is not installed. Systems without a package here have it from `npm ci`. */
export const webrtcProblem = (
  { webrtcPort }: Pick<Config, "webrtcPort">,
  has: (kind: SetupKind) => boolean = hasLibraries,
): string | undefined =>
  webrtcPort === 0 || setupPackages("webrtc").length === 0 || has("webrtc")
    ? undefined
    : `${settings.webrtcPort.variable}=${webrtcPort}: the library of WebRTC calls is not installed: run edgewise setup webrtc`
