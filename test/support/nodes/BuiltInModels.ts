// Entries of the built-in catalog for a test's own catalog: the real weights under the real ids, with the changes a
// test wants.
import { readFileSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { builtInCatalog } from "#config/Config.ts"
import type { TestModel } from "./TestCatalog.ts"

interface Entry extends TestModel {
  readonly files: Readonly<Record<string, { readonly source: string }>>
}

const catalog = JSON.parse(readFileSync(builtInCatalog, "utf8")) as { readonly models: ReadonlyArray<Entry> }

/** The entry of that id; its files are where the built-in catalog has them. */
export const builtInModel = (id: string, changes: Partial<TestModel> = {}): TestModel => {
  const entry = catalog.models.find((model) => model.id === id)
  if (entry === undefined) throw new Error(`the built-in catalog has no ${id}`)
  const files = Object.fromEntries(
    Object.entries(entry.files).map(([role, file]) => [
      role,
      { ...file, source: resolve(dirname(builtInCatalog), file.source) },
    ]),
  )
  return { ...entry, files, ...changes }
}
