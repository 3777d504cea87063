// A second Node on this machine, with which a reader may run the programs of a page: the first one on the path that is of another major
// version than the one of the tests and is not in a folder of packages.
import { spawnSync } from "node:child_process"
import { mkdirSync, symlinkSync } from "node:fs"
import { delimiter, join } from "node:path"
import type { GuideBlock } from "./GuideBlocks.ts"

interface OtherNode {
  readonly path: string
  /** Such as `v20.20.2`. */
  readonly version: string
}

const majorOf = (version: string): string => version.split(".")[0] ?? ""

const versionOf = (path: string): string | undefined => {
  const { status, stdout } = spawnSync(path, ["--version"], { encoding: "utf8" })
  return status === 0 ? stdout.trim() : undefined
}

export const otherNode: OtherNode | undefined = (process.env.PATH ?? "")
  .split(delimiter)
  .filter((folder) => folder !== "" && !folder.includes("node_modules"))
  .flatMap((folder) => {
    const path = join(folder, "node")
    const version = versionOf(path)
    return version === undefined || majorOf(version) === majorOf(process.version) ? [] : [{ path, version }]
  })[0]

export const noOtherNode = "no second Node of another version on the path"

/** A line that makes `node` mean the other one from here on. */
export const useNode = ({ path }: OtherNode, folder: string): GuideBlock => {
  const bin = join(folder, "other-node")
  mkdirSync(bin)
  symlinkSync(path, join(bin, "node"))
  return { language: "sh", file: undefined, line: 0, text: `export PATH=${bin}:$PATH` }
}
