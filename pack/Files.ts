// What packing adds to the repository's folder, and removes again: the folder `app`, which has the program as JavaScript
// with the packages that it may carry, and a package.json for it. .gitignore has both.
import { existsSync, readdirSync, renameSync, rmSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

export const root = fileURLToPath(new URL("..", import.meta.url))
export const app = join(root, "app")

/** Folders of the program, from the root. */
const folders = ["src", "actors", "engines", "bench/harness"]

/** All files of the program, as paths from the root. */
export const programFiles = (): ReadonlyArray<string> =>
  folders.flatMap((folder) =>
    readdirSync(join(root, folder), { recursive: true, encoding: "utf8", withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => join(entry.parentPath, entry.name).slice(root.length))
      .filter((path) => !/^(?:engines\/grammar|src\/web\/voice)\/test\//.test(path)),
  )

/** Weights and what belongs to them: the built-in models without their evaluation and training. */
export const modelPaths = [
  "models/catalog.json",
  "models/kokoro-demo",
  "models/llama-demo",
  "models/turns-demo",
  "models/whisper-demo",
  "models/whisper-demo-en",
  "models/vision-demo",
]

export const packageFile = join(root, "package.json")

/** The repository's package.json while the package's own one is in its place. */
export const keptPackageFile = join(root, "package.json.kept")

/** Removes everything that packing made, also after a packing that was interrupted. */
export const removeMade = (): void => {
  rmSync(app, { recursive: true, force: true })
  if (existsSync(keptPackageFile)) renameSync(keptPackageFile, packageFile)
}
