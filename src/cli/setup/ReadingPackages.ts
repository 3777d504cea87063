// Packages of the registry with the readings of Chinese and Japanese characters, for Kokoro's voices of these languages. An installation
// leaves them out, because few nodes need them.
import type { RegistryPackage } from "./RegistryPackages.ts"

export const readingKinds = ["chinese", "japanese"] as const
export type ReadingKind = (typeof readingKinds)[number]

/** Without dependencies, because `setup` installs single folders. Hashes and sizes from the registry on 2026-11-27. */
export const readingPackages: Readonly<Record<ReadingKind, ReadonlyArray<RegistryPackage>>> = {
  chinese: [
    {
      name: "pinyin-pro",
      version: "3.29.4",
      integrity:
        "sha512-SPXpDT2cHEy+d26V1RXYMlVzXN42hotFAak1fzyWPi4o2dKXb61UqD4pzxDJHwk6gbv8vQ6EfErd+hYX0Qhzug==",
      downloadBytes: 320_757,
      installedBytes: 944_398,
    },
  ],
  japanese: [
    {
      name: "lindera-wasm-nodejs-ipadic",
      version: "2.0.0",
      integrity:
        "sha512-ocuJn9MUA7v5wuXRSADgzLu2Hn2//GmAYHARXSkTbMOCk3bv4Rh1L39XjjJ05286HL0YWfpPo67XrxLMJ/zIhQ==",
      downloadBytes: 12_006_743,
      installedBytes: 13_101_761,
    },
  ],
}
