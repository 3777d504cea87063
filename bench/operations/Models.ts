// The models of these nodes: the built-in catalog with absolute paths of its files and nothing loaded at the start, and
// a fake one.
import { readFile } from "node:fs/promises"
import { dirname, resolve } from "node:path"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"

interface Entry {
  readonly id: string
  readonly adapter: string
  readonly options: unknown
  readonly files: Readonly<Record<string, { readonly source: string }>>
}

export const builtInModels = async () => {
  const text = await readFile(builtInCatalog, "utf8")
  const { models } = JSON.parse(text) as { readonly models: ReadonlyArray<Entry> }
  return models.map((entry) => ({
    ...entry,
    files: Object.fromEntries(
      Object.entries(entry.files).map(([role, file]) => [
        role,
        { ...file, source: resolve(dirname(builtInCatalog), file.source) },
      ]),
    ),
    runtime: { load: "demand" },
  }))
}

export const fakeModel = {
  id: "fake",
  kind: "text",
  adapter: "fake",
  ownedBy: "bench",
  created: 1,
  files: {},
  runtime: { load: "start" },
  price: {},
} as const
