// Pulls all hub files of one catalog entry, one after the other.
import { Effect, type Scope } from "effect"
import { type FolderMember, hubScheme, membersOf, parseHubFile } from "#domain/models/HubFile.ts"
import type { ModelEntry } from "#domain/models/ModelEntry.ts"
import { BadCatalog } from "./CatalogFile.ts"
import type { PullSettings, PullWatcher } from "./Download.ts"
import type { PullError } from "./PullErrors.ts"
import { type Pulled, pullFile } from "./PullFile.ts"

export interface PulledFile extends Pulled {
  readonly role: string
  readonly source: string
}

/** The entry to pull, and how. */
interface ModelPull {
  /** Path of the catalog, for errors. */
  readonly catalog: string
  readonly entry: ModelEntry
  readonly settings: PullSettings
  /** Makes the progress watcher of a file, given its name without folders. It lasts until the scope closes. */
  readonly watch: (name: string) => Effect.Effect<PullWatcher, never, Scope.Scope>
}

const filesOf = (catalog: string, entry: ModelEntry) =>
  Effect.forEach(
    Object.entries(entry.files).filter(([, { source }]) => source.startsWith(hubScheme)),
    ([role, { files, sha256, sizeBytes, source }]) => {
      const file = parseHubFile(source)
      const problem = `${entry.id}: ${role}: ${source} is not hf:owner/repo@commit/file`
      if (file === undefined) return Effect.fail(new BadCatalog({ path: catalog, problem }))
      const members: ReadonlyArray<FolderMember> =
        files === undefined ? [{ file, source, sha256, sizeBytes }] : membersOf(file, files)
      return Effect.succeed(members.map((member) => ({ role, ...member })))
    },
  ).pipe(Effect.map((all) => all.flat()))

/** The files that were pulled or already there. Empty for an entry whose files are all local. */
export const pullModel = ({
  catalog,
  entry,
  settings,
  watch,
}: ModelPull): Effect.Effect<ReadonlyArray<PulledFile>, BadCatalog | PullError> =>
  Effect.flatMap(filesOf(catalog, entry), (files) =>
    Effect.forEach(files, ({ file, role, sha256, sizeBytes, source }) =>
      watch(file.path.slice(file.path.lastIndexOf("/") + 1)).pipe(
        Effect.flatMap((watcher) => pullFile(file, { sha256, sizeBytes }, settings, watcher)),
        Effect.scoped,
        Effect.map((pulled): PulledFile => ({ role, source, ...pulled })),
      ),
    ),
  )
