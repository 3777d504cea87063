// The models of a node: those of its catalog file and, where that is the built-in one, those that were added to it. The
// built-in catalog belongs to the program and is never written. What `edgewise models add` adds to it stands in a file of
// the data directory, whose entries come first and take the place of built-in ones with an id that they have or answer to.
import { existsSync } from "node:fs"
import { isAbsolute, join } from "node:path"
import { Effect } from "effect"
import { builtInCatalog } from "#config/settings/NodeSettings.ts"
import type { ConversationEntry } from "#domain/conversation/ConversationEntry.ts"
import { hubScheme } from "#domain/models/HubFile.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { type BadCatalog, readCatalog } from "./CatalogFile.ts"

/** The settings that decide which models a node has. */
export interface CatalogSettings {
  /** Absolute. */
  readonly catalog: string
  readonly dataDir: string
}

/** The file of the models that were added to the built-in ones. */
export const addedModels = (dataDir: string): string => join(dataDir, "models.jsonc")

const isBuiltIn = ({ catalog }: CatalogSettings): boolean => catalog === builtInCatalog

/** The file that `edgewise models add` and `remove` write. */
export const writtenCatalog = (settings: CatalogSettings): string =>
  isBuiltIn(settings) ? addedModels(settings.dataDir) : settings.catalog

export interface CatalogModel {
  readonly entry: ModelEntry
  /** The file that the entry stands in. */
  readonly file: string
}

/** Where an entry stands, in words: the file's path, or `built-in`. */
export const originOf = (file: string): string => (file === builtInCatalog ? "built-in" : file)

/** The entry with absolute paths, so that it means the same beside the entries of another file. */
const withPaths = (entry: ModelEntry, folder: string): ModelEntry => ({
  ...entry,
  files: Object.fromEntries(
    Object.entries(entry.files).map(([role, file]) => {
      const isPath = !file.source.startsWith(hubScheme) && !isAbsolute(file.source)
      return [role, isPath ? { ...file, source: join(folder, file.source) } : file]
    }),
  ),
})

/** All names of the added entries. A built-in one with one of them is not deployed. */
const namesOf = (entries: ReadonlyArray<Named>): ReadonlySet<string> =>
  new Set(entries.flatMap(({ aliases = [], id }) => [id, ...aliases]))

type Named = Pick<ModelEntry, "aliases" | "id">

/**
 * What a node deploys of added and built-in entries, in this order.
 * @param others further entries that were added
 */
export const withBuiltIn = <A extends Named>(
  added: ReadonlyArray<A>,
  builtIn: ReadonlyArray<A>,
  others: ReadonlyArray<Named> = [],
): ReadonlyArray<A> => {
  const names = namesOf([...added, ...others])
  return [...added, ...builtIn.filter(({ id }) => !names.has(id))]
}

/** The models beside which added ones stand. */
export const besideIt = ({
  catalog,
}: CatalogSettings): Effect.Effect<ReadonlyArray<ModelEntry>, BadCatalog> =>
  Effect.map(readCatalog(catalog), ({ models }) => models)

export interface CatalogConversation {
  readonly entry: ConversationEntry
  /** The file that the entry stands in. */
  readonly file: string
}

/** The entries of a node's catalog, in the order in which they are listed. */
export const readEntries = (
  settings: CatalogSettings,
  regions?: ReadonlyArray<string>,
): Effect.Effect<
  {
    readonly models: ReadonlyArray<CatalogModel>
    readonly conversations: ReadonlyArray<CatalogConversation>
  },
  BadCatalog
> =>
  Effect.gen(function* () {
    const { catalog, dataDir } = settings
    const { conversations, models } = yield* readCatalog(catalog, { regions })
    const file = addedModels(dataDir)
    const from =
      (file: string) =>
      <A>(entry: A) => ({ entry, file })
    if (!isBuiltIn(settings) || !existsSync(file)) {
      return { models: models.map(from(catalog)), conversations: conversations.map(from(catalog)) }
    }
    const added = yield* readCatalog(file, { regions, beside: models })
    const entries = added.models.map((entry) => withPaths(entry, dataDir))
    const fileOf = (isAdded: boolean) => (isAdded ? file : catalog)
    return {
      models: withBuiltIn(entries, models, added.conversations).map((entry) =>
        from(fileOf(entries.includes(entry)))(entry),
      ),
      conversations: withBuiltIn(added.conversations, conversations, entries).map((entry) =>
        from(fileOf(added.conversations.includes(entry)))(entry),
      ),
    }
  })

/** The models of a node's catalog, in the order in which they are listed. */
export const readModels = (
  settings: CatalogSettings,
  regions?: ReadonlyArray<string>,
): Effect.Effect<ReadonlyArray<CatalogModel>, BadCatalog> =>
  Effect.map(readEntries(settings, regions), ({ models }) => models)
