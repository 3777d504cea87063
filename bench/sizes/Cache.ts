// Where generated weights are kept: a folder in the system's temporary folder, one file a recipe. A file is written to a
// name of its own and renamed when it is whole, so runs at the same time never see half a file. Called by the generators.
import { createHash } from "node:crypto"
import { existsSync } from "node:fs"
import { mkdir, rename, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

export interface CachedFile {
  /** What the file is called, without its ending, e.g. `text-0.2b`. */
  readonly name: string
  /** With the dot, e.g. `.gguf`. */
  readonly ending: string
  /** Everything that the content depends on. Another recipe gets another file. */
  readonly recipe: unknown
  /** Writes the whole content to a path that does not exist yet. */
  readonly write: (path: string) => Promise<void>
}

const folder = join(tmpdir(), "edgewise-bench-sizes")

const hashOf = (recipe: unknown): string =>
  createHash("sha256").update(JSON.stringify(recipe)).digest("hex").slice(0, 12)

/** The path of the file, which is written first where it is missing. */
export const cachedFile = async ({ ending, name, recipe, write }: CachedFile): Promise<string> => {
  const path = join(folder, `${name}-${hashOf(recipe)}${ending}`)
  if (existsSync(path)) return path
  await mkdir(folder, { recursive: true })
  const unfinished = `${path}.${process.pid}.part`
  try {
    await write(unfinished)
    await rename(unfinished, path)
  } finally {
    await rm(unfinished, { force: true })
  }
  return path
}
