// Entries of the built-in catalog for a test's own catalog: the same weights and ids, with the changes that a test
// requests.
import { readFileSync } from "node:fs"
import { dirname, resolve } from "node:path"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"
import type { TestModel } from "./TestCatalog.ts"

interface Entry extends TestModel {
  readonly files: Readonly<Record<string, { readonly source: string }>>
}

const catalog = JSON.parse(readFileSync(builtInCatalog, "utf8")) as { readonly models: ReadonlyArray<Entry> }

/** The entry of that id, with the absolute paths of its files. */
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
