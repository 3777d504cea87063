// A package of the registry that an installation leaves out and `edgewise setup` installs.
import { existsSync, readFileSync } from "node:fs"
import { createRequire } from "node:module"
import { join } from "node:path"

export interface RegistryPackage {
  readonly name: string
  readonly version: string
  /** Of the registry's tarball, as in a lock file. */
  readonly integrity: string
  readonly downloadBytes: number
  readonly installedBytes: number
}

/** Whether a package is installed with this version, where engines look for it. */
export const isInstalled = ({ name, version }: Pick<RegistryPackage, "name" | "version">): boolean =>
  (createRequire(import.meta.url).resolve.paths(name) ?? []).some((folder) => {
    const path = join(folder, name, "package.json")
    return (
      existsSync(path) && (JSON.parse(readFileSync(path, "utf8")) as { version?: string }).version === version
    )
  })

const megabytes = (bytes: number): string => `${Math.max(1, Math.round(bytes / 1e6))} MB`

/** What the download of a kind costs, e.g. `320 MB to download, 563 MB on disk`. */
export const costOf = (wanted: ReadonlyArray<RegistryPackage>): string => {
  const sum = (key: "downloadBytes" | "installedBytes") => wanted.reduce((total, one) => total + one[key], 0)
  return `${megabytes(sum("downloadBytes"))} to download, ${megabytes(sum("installedBytes"))} on disk`
}
