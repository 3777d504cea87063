// Keeps generated weights in a folder of the system's temporary folder, one file or folder for each recipe. Each is
// written under a temporary name and renamed when it is complete, so concurrent runs never see a part of it.
import { createHash, randomUUID } from "node:crypto"
import { existsSync } from "node:fs"
import { mkdir, rename, rm } from "node:fs/promises"
import { tmpdir } from "node:os"
import { join } from "node:path"

interface Cached {
  /** Name without its ending, e.g. `text-0.2b`. */
  readonly name: string
  /** Everything that the content depends on. Another recipe gets another file or folder. */
  readonly recipe: unknown
}

interface CachedFile extends Cached {
  /** With the dot, e.g. `.gguf`. */
  readonly ending: string
  /** Writes the whole content to a path that does not exist yet. */
  readonly write: (path: string) => Promise<void>
}

const defaultFolder = join(tmpdir(), "edgewise-bench-sizes")

const hashOf = (recipe: unknown): string =>
  createHash("sha256").update(JSON.stringify(recipe)).digest("hex").slice(0, 12)

const pathOf = (folder: string, name: string, recipe: unknown, ending: string): string =>
  join(folder, `${name}-${hashOf(recipe)}${ending}`)

/** The path of the file, which is written first if it is missing. */
export const cachedFile = async (
  { ending, name, recipe, write }: CachedFile,
  folder = defaultFolder,
): Promise<string> => {
  const path = pathOf(folder, name, recipe, ending)
  if (existsSync(path)) return path
  await mkdir(folder, { recursive: true })
  const unfinished = `${path}.${randomUUID()}.part`
  try {
    await write(unfinished)
    await rename(unfinished, path)
  } finally {
    await rm(unfinished, { force: true })
  }
  return path
}

interface CachedFolder extends Cached {
  /** Writes everything into an existing, empty folder. */
  readonly fill: (path: string) => Promise<void>
}

/** The path of the folder, which is filled first if it is missing. */
export const cachedFolder = async ({ fill, name, recipe }: CachedFolder): Promise<string> => {
  const path = pathOf(defaultFolder, name, recipe, "")
  if (existsSync(path)) return path
  const unfinished = `${path}.${randomUUID()}.part`
  await mkdir(unfinished, { recursive: true })
  try {
    await fill(unfinished)
    await rename(unfinished, path)
  } catch (cause) {
    // Unlike a file, a folder cannot replace one that another process has filled meanwhile.
    if (!existsSync(path)) throw cause
  } finally {
    await rm(unfinished, { recursive: true, force: true })
  }
  return path
}
