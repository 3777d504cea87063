// Searches the bytes of all files of a folder, for tests that nothing of a text is left anywhere.
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** Empty if the file has been removed since it was listed, as a node that runs does with its own. */
const bytesOf = (file: string): Buffer => {
  try {
    return readFileSync(file)
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return Buffer.alloc(0)
    throw cause
  }
}

/** `file: text` for each file at or below `path` that holds one of the texts. */
export const filesWith = (path: string, texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  readdirSync(path, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name))
    .flatMap((file) => {
      const bytes = bytesOf(file)
      return texts.filter((text) => bytes.includes(text)).map((text) => `${file}: ${text}`)
    })
