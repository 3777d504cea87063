// Searches the bytes of all files of a folder, for tests that nothing of a text is left anywhere.
import { readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"

/** The value, or another one if the file or folder has been removed since it was listed, as a node that runs does with its own. */
const unlessGone = <A>(read: () => A, gone: A): A => {
  try {
    return read()
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "ENOENT") return gone
    throw cause
  }
}

/** All files at or below a folder. Not `recursive` of `readdirSync`, which fails if a folder is removed meanwhile. */
const filesBelow = (folder: string): ReadonlyArray<string> =>
  unlessGone(() => readdirSync(folder, { withFileTypes: true }), []).flatMap((entry) => {
    const path = join(folder, entry.name)
    if (entry.isDirectory()) return filesBelow(path)
    return entry.isFile() ? [path] : []
  })

/** `file: text` for each file at or below `path` that holds one of the texts. */
export const filesWith = (path: string, texts: ReadonlyArray<string>): ReadonlyArray<string> =>
  filesBelow(path).flatMap((file) => {
    const bytes = unlessGone(() => readFileSync(file), Buffer.alloc(0))
    return texts.filter((text) => bytes.includes(text)).map((text) => `${file}: ${text}`)
  })
