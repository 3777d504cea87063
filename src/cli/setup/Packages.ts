// The packages of the registry that an installation leaves out and `edgewise setup` installs, and what is wrong with a node that needs one
// which is not installed.
import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"
import { type Config, settings } from "#config/Settings.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"

export const gpuKinds = ["cuda", "vulkan"] as const
export const kinds = [...gpuKinds, "webrtc", "chinese", "japanese"] as const
export type Kind = (typeof kinds)[number]

export interface RegistryPackage {
  readonly name: string
  readonly version: string
  /** Of the registry's tarball, as in a lock file. */
  readonly integrity: string
  readonly downloadBytes: number
  readonly installedBytes: number
}

interface LeftOut extends RegistryPackage {
  readonly kind: Kind
  /** System and processor, with glibc. Absent: all. */
  readonly system?: string
}

/** Without dependencies, because `setup` installs single folders. Hashes and sizes from the registry on 2026-11-23 and 2026-11-27. */
const leftOut: ReadonlyArray<LeftOut> = [
  // llama.cpp's libraries for GPUs, which are larger than everything else together (docs/install.md).
  {
    kind: "cuda",
    system: "linux-x64",
    name: "@node-llama-cpp/linux-x64-cuda",
    version: "3.21.1",
    integrity:
      "sha512-idsE55VoD/FbvLhnBC9krUJaUoC0XnebseAAnCpm/brKf61HEbu+idgbb5eN6mxkjLSrHtILprJ0nDcUJjVrFg==",
    downloadBytes: 142_850_036,
    installedBytes: 188_693_843,
  },
  // For drivers and GPUs that the other one does not support.
  {
    kind: "cuda",
    system: "linux-x64",
    name: "@node-llama-cpp/linux-x64-cuda-ext",
    version: "3.21.1",
    integrity:
      "sha512-1PuURowccBcks3CCoMe1mTHh5vD0V5bFHMUEgtbI/OSDjpP+Pdbn+lf42CGUrepTzR8kCH1HovQ7d8q6/vuIKA==",
    downloadBytes: 176_679_086,
    installedBytes: 374_197_990,
  },
  {
    kind: "vulkan",
    system: "linux-x64",
    name: "@node-llama-cpp/linux-x64-vulkan",
    version: "3.21.1",
    integrity:
      "sha512-flEeSzONQ6OIm5bYKLQf4eEnBzcC5WugFbyPUwkCqyyOFZ8pH0H9ulQ7ZNDLSIczeKneMRJornlyY1Hq7d3GDA==",
    downloadBytes: 27_476_121,
    installedBytes: 84_483_299,
  },
  // The library of calls, which are off by default. Other systems have it from `npm ci` only.
  {
    kind: "webrtc",
    system: "linux-x64",
    name: "@node-datachannel/linux-x64-gnu",
    version: "0.33.4",
    integrity:
      "sha512-xN0x3lcQ87qwOAmf1dBLVWrYY40LQ7pM4Y9wuNjP+EtN4IwiXqrhPdgupzGAElxna+n2NgBG0gT60dZpgoYU2Q==",
    downloadBytes: 3_486_574,
    installedBytes: 9_061_249,
  },
  {
    kind: "webrtc",
    system: "linux-arm64",
    name: "@node-datachannel/linux-arm64-gnu",
    version: "0.33.4",
    integrity:
      "sha512-rR4yjwxpI1miLSrruLGcfR9yfw0Qebw+Twt+u+lKsL9SwmXxTm5pJhUAa9RU+c35oZ98IyAxGFjRwwq85BTbog==",
    downloadBytes: 3_289_319,
    installedBytes: 8_540_127,
  },
  // The readings of Chinese and Japanese characters, for Kokoro's voices of these languages.
  {
    kind: "chinese",
    name: "pinyin-pro",
    version: "3.29.4",
    integrity:
      "sha512-SPXpDT2cHEy+d26V1RXYMlVzXN42hotFAak1fzyWPi4o2dKXb61UqD4pzxDJHwk6gbv8vQ6EfErd+hYX0Qhzug==",
    downloadBytes: 320_757,
    installedBytes: 944_398,
  },
  {
    kind: "japanese",
    name: "lindera-wasm-nodejs-ipadic",
    version: "2.0.0",
    integrity:
      "sha512-ocuJn9MUA7v5wuXRSADgzLu2Hn2//GmAYHARXSkTbMOCk3bv4Rh1L39XjjJ05286HL0YWfpPo67XrxLMJ/zIhQ==",
    downloadBytes: 12_006_743,
    installedBytes: 13_101_761,
  },
]

/** The packages of a kind for this machine. Empty if there are none. */
export const packagesOf = (
  kind: Kind,
  machine = `${process.platform}-${process.arch}`,
): ReadonlyArray<RegistryPackage> =>
  leftOut.filter((one) => one.kind === kind && (one.system ?? machine) === machine)

/** Whether a package is installed with this version, where engines look for it. */
const isInstalled = ({ name, version }: RegistryPackage): boolean =>
  (createRequire(import.meta.url).resolve.paths(name) ?? []).some((folder) => {
    const path = join(folder, name, "package.json")
    return (
      existsSync(path) && (JSON.parse(readFileSync(path, "utf8")) as { version?: string }).version === version
    )
  })

/** Whether all packages of a kind are installed. False if there are none for this machine. */
export const isSetUp = (kind: Kind): boolean => {
  const wanted = packagesOf(kind)
  return wanted.length > 0 && wanted.every(isInstalled)
}

/** What is wrong with the GPU that a catalog entry asks for, if its libraries are not installed. */
export const gpuProblem = (
  { id, options }: Pick<ModelEntry, "id" | "options">,
  has: (kind: Kind) => boolean = isSetUp,
): string | undefined => {
  const kind = gpuKinds.find((one) => one === options.gpu)
  if (kind === undefined || has(kind)) return undefined
  return packagesOf(kind).length === 0
    ? `${id}: options.gpu is "${kind}", and llama.cpp has no ${kind} libraries for ${process.platform} ${process.arch}`
    : `${id}: options.gpu is "${kind}", and the ${kind} libraries are not installed: run edgewise setup ${kind}`
}

/** What is wrong with a node that takes WebRTC calls, if their library is not installed. */
export const webrtcProblem = (
  { webrtcPort }: Pick<Config, "webrtcPort">,
  has: (one: RegistryPackage) => boolean = isInstalled,
): string | undefined =>
  webrtcPort === 0 || packagesOf("webrtc").every(has)
    ? undefined
    : `${settings.webrtcPort.variable}=${webrtcPort}: the library of WebRTC calls is not installed: run edgewise setup webrtc`
