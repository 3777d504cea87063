// The product's version, and the commit that it was made from. A packed program has both in its package.json; in a checkout
// git says the commit.
import { spawnSync } from "node:child_process"
import { fileURLToPath } from "node:url"
import packageJson from "../../../package.json" with { type: "json" }

export const version: string = packageJson.version

const root = fileURLToPath(new URL("../../..", import.meta.url))

const git = (folder: string, ...args: ReadonlyArray<string>): string | undefined => {
  const { status, stdout } = spawnSync("git", ["-C", folder, ...args], { encoding: "utf8", timeout: 5_000 })
  return status === 0 ? stdout.trim() : undefined
}

/**
 * The commit of a repository's folder, `-dirty` after it if files were changed. `unknown` where there is no git, or the
 * folder is only inside of another repository.
 */
export const commitOf = (folder: string): string =>
  git(folder, "rev-parse", "--show-prefix") === ""
    ? (git(folder, "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*") ?? "unknown")
    : "unknown"

/** Blocks for some milliseconds in a checkout. */
export const commit = (): string => {
  const written = (packageJson as { readonly commit?: string }).commit
  return written ?? commitOf(root)
}
